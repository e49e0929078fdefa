//! The ways in which the payloads of a statement may be gathered: typed; opaque where that doesn't do; and asked, for what
//! only ClickHouse can read.

use std::sync::Arc;

use windrow_block::{Format, Layout, NotTyped, NotTypedReason, OpaquePlan, Present, ReadPlan, Rows};
use windrow_client::Client;
use windrow_gatherer::InsertKind;
use windrow_sink::{Destination, Form};

use super::asked::AskedWay;
use super::questions::Leave;
use super::read::{read_payload, LARGE_BYTES};
use crate::admission::Marks;

/// At least one of them is there.
pub(crate) struct Ways {
    pub(crate) typed: Option<TypedWay>,
    /// Boxed: most have none.
    pub(crate) opaque: Option<Box<OpaqueWay>>,
    /// For payloads that can go no other way.
    pub(crate) asked: Option<Box<AskedWay>>,
}

/// Payloads are read into columns.
pub(crate) struct TypedWay {
    pub(crate) format: &'static Format,
    pub(crate) plan: ReadPlan,
    /// With all of the plan's columns.
    pub(crate) destination: Arc<Destination>,
    /// Nobody else could take what is larger than a batch is to be.
    pub(crate) takes_any_size: bool,
}

/// Payloads stay text.
pub(crate) struct OpaqueWay {
    pub(crate) plan: OpaquePlan,
    /// Without a header.
    pub(crate) destination: Arc<Destination>,
    pub(crate) kind: Arc<InsertKind>,
    /// Why payloads of the statement can't be typed at all, if that is so.
    pub(crate) instead_because: Option<&'static str>,
}

/// A payload's rows, and what decides which others they may be with.
pub(crate) struct Gatherable {
    pub(crate) rows: Rows,
    pub(crate) kinship: Kinship,
}

/// What payloads of one statement must have in common to share a batch.
#[derive(Clone, PartialEq)]
pub(crate) enum Kinship {
    /// These of the plan's columns are in them.
    Typed(Present),
    /// This stands before their rows.
    Opaque { header: Vec<u8> },
    /// ClickHouse has read them into all of the plan's columns.
    Asked,
}

/// Why a payload can't be gathered.
pub(crate) enum NotGatherable {
    TooLarge,
    NotRead(Unread),
}

/// A payload that could not be read for certain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unread {
    /// As the label of a metric.
    pub(crate) reason: &'static str,
    /// Unless it has nothing to do with what is in it.
    pub(crate) why: Option<NotTypedReason>,
    pub(crate) rows_before: u64,
    pub(crate) payload_bytes: u64,
}

impl Unread {
    pub(crate) fn because(reason: &'static str, payload_bytes: u64) -> Unread {
        Unread { reason, why: None, rows_before: 0, payload_bytes }
    }
}

impl TypedWay {
    /// For a backend that is told nothing but rows: no setting goes along, and no payload is somebody else's.
    pub(crate) fn take_all(&mut self) {
        self.takes_any_size = true;
        Arc::make_mut(&mut self.destination).settings.clear();
    }
}

impl Ways {
    pub(crate) fn read(&self, payload: &[u8], kind: &InsertKind) -> Result<Gatherable, NotGatherable> {
        if let Some((opaque, because)) = self.opaque.as_ref().and_then(|way| Some((way, way.instead_because?))) {
            match opaque.join(payload) {
                Err(NotGatherable::NotRead(_)) if self.typed.is_none() => {
                    return Err(NotGatherable::NotRead(Unread::because(because, payload.len() as u64)))
                }
                Err(_) if self.typed.is_some() => {}
                result => return result,
            }
        }
        let Some(typed) = &self.typed else {
            let because = self.asked.as_ref().and_then(|asked| asked.not_typed).unwrap_or("format");
            return Err(NotGatherable::NotRead(Unread::because(because, payload.len() as u64)));
        };
        if payload.len() as u64 > kind.limits.max_data_size_bytes && !typed.takes_any_size {
            return Err(NotGatherable::TooLarge);
        }
        match read_payload(typed.format, payload, &typed.plan) {
            Ok(parsed) => Ok(Gatherable { rows: Rows::Typed(parsed.block), kinship: Kinship::Typed(parsed.present) }),
            Err(not_typed) => {
                let NotTyped { reason, row } = not_typed;
                let payload_bytes = payload.len() as u64;
                let unread = Unread { reason: reason.as_str(), why: Some(reason), rows_before: row, payload_bytes };
                let not_read = NotGatherable::NotRead(unread);
                let opaque = self.opaque.as_ref().filter(|_| is_no_doubt_of_the_payload(not_typed.reason));
                opaque.and_then(|opaque| opaque.join(payload).ok()).ok_or(not_read)
            }
        }
    }

    /// Lets ClickHouse read a payload. `None`: the insert is to be forwarded.
    pub(crate) async fn ask<'p>(
        &'p self,
        client: &Client,
        leave: Leave<'_>,
        payload: &[u8],
        query_parameters: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Option<Gatherable> {
        let typed = self.typed.as_ref().map(|typed| typed.plan.columns()).unwrap_or_default();
        self.asked.as_ref()?.read(typed, client, leave, payload, query_parameters).await
    }

    /// Texts that nobody here has read have none that are known.
    pub(crate) fn has_sound_marks(&self, marks: &Marks, read: &Gatherable) -> bool {
        let (Rows::Typed(block), Kinship::Typed(present), Some(typed)) = (&read.rows, &read.kinship, &self.typed)
        else {
            return false;
        };
        let columns = typed.plan.columns();
        let Some(at) = present.iter().position(|at| columns[at].name == marks.column) else {
            return marks.has_allowed_default;
        };
        match block.column(at).map(|column| column.layout()) {
            Some(Layout::Fixed { width: 1, data }) => {
                data.iter().all(|byte| marks.allowed.contains(&byte.cast_signed()))
            }
            _ => false,
        }
    }

    /// The table did not get the window that was counted on.
    pub(crate) fn no_repeat_is_recognised(&mut self) {
        let typed = self.typed.as_mut().map(|way| &mut way.destination);
        let opaque = self.opaque.as_mut().map(|way| &mut way.destination);
        let asked = self.asked.as_mut().map(|way| &mut way.destination);
        let all = typed.into_iter().chain(opaque).chain(asked);
        all.for_each(|destination| Arc::make_mut(destination).deduplicates = false);
    }

    /// Whether a payload had a field with the name of no column known here.
    pub(crate) fn has_skipped(&self) -> bool {
        self.typed.as_ref().is_some_and(|typed| typed.plan.has_skipped())
    }

    /// Where payloads go that could not be read.
    pub(crate) fn any_destination(&self) -> &Arc<Destination> {
        let typed = self.typed.as_ref().map(|way| &way.destination);
        let opaque = self.opaque.as_ref().map(|way| &way.destination);
        let asked = self.asked.as_ref().map(|way| &way.destination);
        typed.or(opaque).or(asked).expect("at least one of them is there")
    }

    /// Where rows go that were read here and have this in common.
    pub(crate) fn destination(&self, kinship: &Kinship) -> Arc<Destination> {
        match kinship {
            Kinship::Typed(present) => {
                let typed = self.typed.as_ref().expect("they were read this way");
                let columns = typed.plan.columns();
                if *present == Present::all(columns.len()) {
                    return typed.destination.clone();
                }
                let mut destination = (*typed.destination).clone();
                destination.columns = present.iter().map(|at| columns[at].name.clone()).collect();
                let types = present.iter().map(|at| columns[at].data_type.clone()).collect();
                destination.form = Form::Native { types };
                Arc::new(destination)
            }
            Kinship::Asked => self.asked.as_ref().expect("they were read this way").destination.clone(),
            Kinship::Opaque { header } => {
                let opaque = self.opaque.as_ref().expect("they were read this way");
                let form = Form::Text { format: opaque.plan.format().name, header: header.clone() };
                Arc::new(Destination { form, ..(*opaque.destination).clone() })
            }
        }
    }
}

/// Reasons that lie in the table or the settings. A payload that may simply be wrong is ClickHouse's to refuse, at once.
fn is_no_doubt_of_the_payload(reason: NotTypedReason) -> bool {
    matches!(reason, NotTypedReason::MixedDefaults | NotTypedReason::Setting)
}

impl OpaqueWay {
    fn join(&self, payload: &[u8]) -> Result<Gatherable, NotGatherable> {
        if payload.len() as u64 > self.kind.limits.max_data_size_bytes {
            return Err(NotGatherable::TooLarge);
        }
        let joined = match payload.len() > LARGE_BYTES {
            true => tokio::task::block_in_place(|| self.plan.join(payload)),
            false => self.plan.join(payload),
        };
        let joined = joined.map_err(|_| NotGatherable::NotRead(Unread::because("type", payload.len() as u64)))?;
        Ok(Gatherable { rows: Rows::Opaque(joined.rows), kinship: Kinship::Opaque { header: joined.header } })
    }
}
