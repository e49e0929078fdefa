//! Steps that decide whether the payloads of a statement may pass through as text, and how.

use std::sync::Arc;

use windrow_columns::{PassthroughFormat, PassthroughPlan, PassthroughSettings};
use windrow_engine::{
    policy::FlushLimits,
    sink::{Destination, Form, ONE_BLOCK},
    InsertKind,
};

use super::readers::{JoinPlan, PassthroughReader};
use crate::admission::{Target, UserContext};
use crate::forward_reason::ForwardReason;

/// Bound of a batch of payloads that pass through. ClickHouse reads a refused batch again for each step of
/// the search for a culprit, and it may be many times as large in ClickHouse's memory (a document with keys
/// of its own in each row), so such batches are kept small.
const MAX_BATCH_BYTES: u64 = 1 << 20;

/// Facts about a statement that decide whether and how its payloads pass through.
pub(super) struct PassthroughRequest<'a> {
    pub(super) format: &'static PassthroughFormat,
    pub(super) targets: &'a [Target],
    pub(super) user: &'a UserContext,
    /// Settings of the request that change what is written or read.
    pub(super) settings: &'a [(&'a str, &'a str)],
    /// Settings of the request that say how values become text, where the table computes something.
    pub(super) formatting: &'a [(&'a str, &'a str)],
    pub(super) kind: &'a InsertKind,
    /// Reason why the statement's payloads can't be parsed, if that is so.
    pub(super) not_parsed: Option<ForwardReason>,
}

impl PassthroughRequest<'_> {
    /// Makes the reader. `None`: payloads can't be joined, or need not be.
    pub(super) fn reader(&self, destination: &Destination) -> Option<PassthroughReader> {
        // Whether rows bring a column does not show in a text.
        if self.targets.iter().any(|target| target.has_to_be_given) {
            return None;
        }
        let instead_because = self.not_parsed.or_else(|| self.has_variants().then_some(ForwardReason::Type));
        if instead_because.is_none() && !self.targets.iter().any(Target::has_default) {
            return None;
        }
        let columns = self.targets.iter().map(|target| (target.name.as_str(), target.type_name.as_str()));
        let plan = PassthroughPlan::new(columns, &self.join_settings()).ok()?;
        let form = Form::Text { format: self.format.name, header: Vec::new() };
        let settings = carried_settings(self.settings, self.formatting);
        Some(PassthroughReader {
            plan: JoinPlan::Text(plan),
            destination: Arc::new(Destination { form, settings, ..destination.clone() }),
            kind: Arc::new(kind_of_small_batches(self.kind)),
            instead_because,
        })
    }

    /// Says whether there are columns of Variant types, which are known here but not read from text.
    fn has_variants(&self) -> bool {
        self.targets.iter().any(|target| target.type_name.contains("Variant("))
    }

    fn join_settings(&self) -> PassthroughSettings {
        let mut join = PassthroughSettings::of(self.format);
        let user = self.user.effective_settings.iter().chain(&self.user.changed_settings);
        let user = user.map(|(name, value)| (name.as_str(), value.as_str()));
        let user = user.filter(|(name, _)| !self.settings.iter().any(|(own, _)| own == name));
        user.chain(self.settings.iter().copied()).for_each(|(name, value)| join.set(name, value));
        join
    }
}

pub(super) fn kind_of_small_batches(kind: &InsertKind) -> InsertKind {
    let limits = &kind.limits;
    let limits = FlushLimits { max_data_size_bytes: limits.max_data_size_bytes.min(MAX_BATCH_BYTES), ..*limits };
    InsertKind { limits, ..kind.clone() }
}

/// Returns the settings that the flush carries: all that change how payloads are read, but for those that the
/// flush of a text sets itself.
pub(super) fn carried_settings(settings: &[(&str, &str)], formatting: &[(&str, &str)]) -> Vec<(String, String)> {
    let is_replaced =
        |name: &str| name == "max_insert_block_size_rows" || ONE_BLOCK.iter().any(|(own, _)| *own == name);
    let settings = settings.iter().filter(|(name, _)| !is_replaced(name)).chain(formatting);
    settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
