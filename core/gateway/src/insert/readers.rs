//! Readers that make rows of a statement's payloads. Payloads are parsed here; where that doesn't do, they
//! pass through as the text or the blocks they came as; and ClickHouse is asked to read the rest.

use std::sync::Arc;

use windrow_clickhouse::Client;
use windrow_columns::{Format, Layout, NotParsed, NotParsedReason, PassthroughPlan, Present, ReadPlan, Rows};
use windrow_engine::{
    sink::{Destination, Form},
    InsertKind,
};

use super::backend_reader::BackendReader;
use super::blocks::BlocksPlan;
use super::questions::ReadPermit;
use super::read::{read_payload, LARGE_BYTES};
use crate::admission::Marks;
use crate::forward_reason::ForwardReason;

/// Readers of a statement's payloads, at least one. The content of a payload decides which of them takes it.
pub(crate) struct Readers {
    pub(crate) parsing: Option<ParsingReader>,
    /// Reader of payloads that pass through. It is boxed, since most statements have none.
    pub(crate) passthrough: Option<Box<PassthroughReader>>,
    /// Reader of payloads that neither of the others takes.
    pub(crate) backend: Option<Box<BackendReader>>,
}

/// Reader that parses payloads into columns.
pub(crate) struct ParsingReader {
    pub(crate) format: &'static Format,
    pub(crate) plan: ReadPlan,
    /// Destination with all of the plan's columns.
    pub(crate) destination: Arc<Destination>,
    /// Positions of columns that rows have to bring, since they would be computed from more than the rows.
    pub(crate) has_to_be_given: Vec<usize>,
    /// Says whether payloads may be larger than a batch is to be, since nobody else could take them.
    pub(crate) takes_any_size: bool,
}

/// Reader that leaves payloads as they came.
pub(crate) struct PassthroughReader {
    pub(crate) plan: JoinPlan,
    /// Destination without a header.
    pub(crate) destination: Arc<Destination>,
    pub(crate) kind: Arc<InsertKind>,
    /// Reason to let payloads pass through before any is parsed, if there is one.
    pub(crate) instead_because: Option<ForwardReason>,
}

/// Rules by which payloads are recognised as joinable.
pub(crate) enum JoinPlan {
    Text(PassthroughPlan),
    Blocks(BlocksPlan),
}

/// Rows of a payload, and the property that decides which other rows may be in their batch.
pub(crate) struct Gatherable {
    pub(crate) rows: Rows,
    pub(crate) compatibility: BatchCompatibility,
}

/// Property that payloads of one statement must have in common to share a batch.
#[derive(Clone, PartialEq)]
pub(crate) enum BatchCompatibility {
    /// The payloads were parsed here, and have these of the plan's columns.
    Parsed(Present),
    /// The payloads pass through as text, with this header before their rows.
    Passthrough { header: Vec<u8> },
    /// The payloads pass through as blocks with types that are not read here. `are_whole` says whether each
    /// of them has all of the statement's columns.
    Blocks { are_whole: bool },
    /// ClickHouse has read the payloads into all of the plan's columns.
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
    /// Prepares the reader for a backend that is told nothing but rows: no setting goes along, and no payload
    /// can be left to another reader.
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
        permit: ReadPermit<'_>,
        payload: &[u8],
        query_parameters: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Option<Gatherable> {
        let parsing = self.parsing.as_ref().map(|parsing| parsing.plan.columns()).unwrap_or_default();
        self.backend.as_ref()?.read(parsing, client, permit, payload, query_parameters).await
    }

    /// Says whether all marks of the rows are known, and are values that ClickHouse takes. The marks of rows
    /// that were not parsed here are not known.
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

    /// Notes that repeats are not recognised, since the table did not get the window that was counted on.
    pub(crate) fn no_repeat_is_recognised(&mut self) {
        let parsing = self.parsing.as_mut().map(|reader| &mut reader.destination);
        let passthrough = self.passthrough.as_mut().map(|reader| &mut reader.destination);
        let backend = self.backend.as_mut().map(|reader| &mut reader.destination);
        let all = parsing.into_iter().chain(passthrough).chain(backend);
        all.for_each(|destination| Arc::make_mut(destination).deduplicates = false);
    }

    /// Says whether a payload had a field with the name of no column known here.
    pub(crate) fn has_skipped(&self) -> bool {
        self.parsing.as_ref().is_some_and(|parsing| parsing.plan.has_skipped())
    }

    /// Says whether payloads are values one after the other, which only the table's types can tell apart.
    pub(crate) fn name_no_types(&self) -> bool {
        let named = |parsing: &ParsingReader| {
            matches!(parsing.format.name, "RowBinary" | "RowBinaryWithDefaults" | "RowBinaryWithNames" | "MsgPack")
        };
        self.parsing.as_ref().is_some_and(named)
    }

    /// Returns a destination for payloads that could not be read.
    pub(crate) fn any_destination(&self) -> &Arc<Destination> {
        let parsing = self.parsing.as_ref().map(|reader| &reader.destination);
        let passthrough = self.passthrough.as_ref().map(|reader| &reader.destination);
        let backend = self.backend.as_ref().map(|reader| &reader.destination);
        parsing.or(passthrough).or(backend).expect("at least one of them is there")
    }

    fn passing(&self) -> &PassthroughReader {
        self.passthrough.as_ref().expect("this reader has read them")
    }

    /// Returns the destination of rows with this batch compatibility.
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

/// Says whether the reason lies in the table or the settings. A payload that may simply be wrong is
/// ClickHouse's to refuse, at once.
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
