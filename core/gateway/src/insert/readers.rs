//! What makes rows of a statement's payloads. They are parsed here; where that doesn't do, they pass through as the
//! text or the blocks they came as; and what only ClickHouse can read, it is asked to read.

use std::sync::Arc;

use windrow_clickhouse::Client;
use windrow_columns::{Format, Layout, NotParsed, NotParsedReason, PassthroughPlan, Present, ReadPlan, Rows};
use windrow_engine::{
    sink::{Destination, Form},
    InsertKind,
};

use super::backend_reader::BackendReader;
use super::blocks::BlocksPlan;
use super::questions::Leave;
use super::read::{read_payload, LARGE_BYTES};
use crate::admission::Marks;
use crate::forward_reason::ForwardReason;

/// At least one of them is there. Which of them takes a payload is decided by what is in it.
pub(crate) struct Readers {
    pub(crate) parsing: Option<ParsingReader>,
    /// Boxed: most have none.
    pub(crate) passthrough: Option<Box<PassthroughReader>>,
    /// For payloads that neither of the others takes.
    pub(crate) backend: Option<Box<BackendReader>>,
}

/// Payloads are read into columns.
pub(crate) struct ParsingReader {
    pub(crate) format: &'static Format,
    pub(crate) plan: ReadPlan,
    /// With all of the plan's columns.
    pub(crate) destination: Arc<Destination>,
    /// Columns of the plan that would be computed from more than the rows.
    pub(crate) has_to_be_given: Vec<usize>,
    /// Nobody else could take what is larger than a batch is to be.
    pub(crate) takes_any_size: bool,
}

/// Payloads stay what they came as.
pub(crate) struct PassthroughReader {
    pub(crate) plan: JoinPlan,
    /// Without a header.
    pub(crate) destination: Arc<Destination>,
    pub(crate) kind: Arc<InsertKind>,
    /// Why payloads of the statement can't be parsed at all, if that is so.
    pub(crate) instead_because: Option<ForwardReason>,
}

/// How payloads are told to be joinable.
pub(crate) enum JoinPlan {
    Text(PassthroughPlan),
    Blocks(BlocksPlan),
}

/// A payload's rows, and what decides which others they may be with.
pub(crate) struct Gatherable {
    pub(crate) rows: Rows,
    pub(crate) compatibility: BatchCompatibility,
}

/// What payloads of one statement must have in common to share a batch.
#[derive(Clone, PartialEq)]
pub(crate) enum BatchCompatibility {
    /// These of the plan's columns are in them.
    Parsed(Present),
    /// This stands before their rows.
    Passthrough { header: Vec<u8> },
    /// Blocks with types that are not read here; whether all of the statement's columns are in each of them.
    Blocks { are_whole: bool },
    /// ClickHouse has read them into all of the plan's columns.
    BackendRead,
}

/// A payload that could not be read for certain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unread {
    pub(crate) reason: ForwardReason,
    pub(crate) rows_before: u64,
    pub(crate) payload_bytes: u64,
}

impl Unread {
    pub(crate) fn because(reason: ForwardReason, payload_bytes: u64) -> Unread {
        Unread { reason, rows_before: 0, payload_bytes }
    }
}

impl ParsingReader {
    /// For a backend that is told nothing but rows: no setting goes along, and no payload is somebody else's.
    pub(crate) fn take_all(&mut self) {
        self.takes_any_size = true;
        Arc::make_mut(&mut self.destination).settings.clear();
    }
}

impl Readers {
    pub(crate) fn read(&self, payload: &[u8], kind: &InsertKind) -> Result<Gatherable, Unread> {
        let unread = |reason| Unread::because(reason, payload.len() as u64);
        if let Some((passthrough, because)) =
            self.passthrough.as_ref().and_then(|reader| Some((reader, reader.instead_because?)))
        {
            match passthrough.join(payload) {
                Err(_) if self.parsing.is_some() => {}
                Err(Unread { reason: ForwardReason::Type, .. }) => return Err(unread(because)),
                result => return result,
            }
        }
        let Some(parsing) = &self.parsing else {
            let because = self.backend.as_ref().and_then(|backend| backend.not_parsed);
            return Err(unread(because.unwrap_or(ForwardReason::Format)));
        };
        if payload.len() as u64 > kind.limits.max_data_size_bytes && !parsing.takes_any_size {
            return Err(unread(ForwardReason::TooLarge));
        }
        match read_payload(parsing.format, payload, &parsing.plan) {
            Ok(parsed) if !parsing.has_to_be_given.iter().all(|column| parsed.present.contains(*column)) => {
                Err(unread(ForwardReason::Function))
            }
            Ok(parsed) => Ok(Gatherable {
                rows: Rows::Parsed(parsed.block),
                compatibility: BatchCompatibility::Parsed(parsed.present),
            }),
            Err(NotParsed { reason, row }) => {
                let unread = Unread { rows_before: row, ..unread(ForwardReason::NotParsed(reason)) };
                let passthrough = self.passthrough.as_ref().filter(|_| is_no_doubt_of_the_payload(reason));
                passthrough.and_then(|passthrough| passthrough.join(payload).ok()).ok_or(unread)
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
        let parsing = self.parsing.as_ref().map(|parsing| parsing.plan.columns()).unwrap_or_default();
        self.backend.as_ref()?.read(parsing, client, leave, payload, query_parameters).await
    }

    /// Texts that nobody here has read have none that are known.
    pub(crate) fn has_sound_marks(&self, marks: &Marks, read: &Gatherable) -> bool {
        let (Rows::Parsed(block), BatchCompatibility::Parsed(present), Some(parsing)) =
            (&read.rows, &read.compatibility, &self.parsing)
        else {
            return false;
        };
        let columns = parsing.plan.columns();
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
        let parsing = self.parsing.as_mut().map(|reader| &mut reader.destination);
        let passthrough = self.passthrough.as_mut().map(|reader| &mut reader.destination);
        let backend = self.backend.as_mut().map(|reader| &mut reader.destination);
        let all = parsing.into_iter().chain(passthrough).chain(backend);
        all.for_each(|destination| Arc::make_mut(destination).deduplicates = false);
    }

    /// Whether a payload had a field with the name of no column known here.
    pub(crate) fn has_skipped(&self) -> bool {
        self.parsing.as_ref().is_some_and(|parsing| parsing.plan.has_skipped())
    }

    /// Whether payloads are values one after the other, and only who knows the table's types can tell them apart.
    pub(crate) fn name_no_types(&self) -> bool {
        let named = |parsing: &ParsingReader| {
            matches!(parsing.format.name, "RowBinary" | "RowBinaryWithDefaults" | "RowBinaryWithNames" | "MsgPack")
        };
        self.parsing.as_ref().is_some_and(named)
    }

    /// Where payloads go that could not be read.
    pub(crate) fn any_destination(&self) -> &Arc<Destination> {
        let parsing = self.parsing.as_ref().map(|reader| &reader.destination);
        let passthrough = self.passthrough.as_ref().map(|reader| &reader.destination);
        let backend = self.backend.as_ref().map(|reader| &reader.destination);
        parsing.or(passthrough).or(backend).expect("at least one of them is there")
    }

    fn passing(&self) -> &PassthroughReader {
        self.passthrough.as_ref().expect("this reader has read them")
    }

    /// Where rows go that were read here and have this in common.
    pub(crate) fn destination(&self, compatibility: &BatchCompatibility) -> Arc<Destination> {
        match compatibility {
            BatchCompatibility::Parsed(present) => {
                let parsing = self.parsing.as_ref().expect("this reader has read them");
                let columns = parsing.plan.columns();
                if *present == Present::all(columns.len()) {
                    return parsing.destination.clone();
                }
                let mut destination = (*parsing.destination).clone();
                destination.columns = present.iter().map(|at| columns[at].name.clone()).collect();
                let types = present.iter().map(|at| columns[at].data_type.clone()).collect();
                destination.form = Form::Native { types };
                Arc::new(destination)
            }
            BatchCompatibility::BackendRead => {
                self.backend.as_ref().expect("this reader has read them").destination.clone()
            }
            BatchCompatibility::Passthrough { header } => {
                let mut destination = (*self.passing().destination).clone();
                if let Form::Text { header: own, .. } = &mut destination.form {
                    own.clone_from(header);
                }
                Arc::new(destination)
            }
            BatchCompatibility::Blocks { .. } => self.passing().destination.clone(),
        }
    }
}

/// Reasons that lie in the table or the settings. A payload that may simply be wrong is ClickHouse's to refuse, at
/// once.
fn is_no_doubt_of_the_payload(reason: NotParsedReason) -> bool {
    matches!(reason, NotParsedReason::MixedDefaults | NotParsedReason::Setting)
}

impl PassthroughReader {
    fn join(&self, payload: &[u8]) -> Result<Gatherable, Unread> {
        let unread = |reason| Unread::because(reason, payload.len() as u64);
        if payload.len() as u64 > self.kind.limits.max_data_size_bytes {
            return Err(unread(ForwardReason::TooLarge));
        }
        let joined = match payload.len() > LARGE_BYTES {
            true => tokio::task::block_in_place(|| self.plan.join(payload)),
            false => self.plan.join(payload),
        };
        joined.ok_or_else(|| unread(ForwardReason::Type))
    }
}

impl JoinPlan {
    fn join(&self, payload: &[u8]) -> Option<Gatherable> {
        let (rows, compatibility) = match self {
            JoinPlan::Text(plan) => {
                let joined = plan.join(payload).ok()?;
                (joined.rows, BatchCompatibility::Passthrough { header: joined.header })
            }
            JoinPlan::Blocks(plan) => {
                let joined = plan.join(payload)?;
                (joined.rows, BatchCompatibility::Blocks { are_whole: joined.are_whole })
            }
        };
        Some(Gatherable { rows: Rows::Passthrough(rows), compatibility })
    }
}
