//! The search for the columns that a refused message doesn't fit, and for its values there. The message is
//! read again into one column at a time.

use crate::messages::{MessagePlan, Source};
use crate::SampledRecord;
use windrow_columns::{Block, ColumnSpec, DataType, DefaultKind, Layout};

use super::fields::{rows, shortened, value_of};
use super::sample::{message_of, Ask};
use crate::pipeline::options::PipelineOptions;
use crate::pipeline::plan::plan_for;
use crate::pipeline::tables::TableDescription;

/// A column, with the value that it can't take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub column: String,
    /// The value as it was sent, if it can be shown.
    pub value: Option<String>,
}

pub(super) struct Misfits<'c> {
    pub options: &'c PipelineOptions,
    pub table: &'c TableDescription,
    pub plan: &'c MessagePlan,
    pub ask: Ask<'c>,
}

impl Misfits<'_> {
    /// Returns the columns that a message doesn't fit. There are none if the message can't be read at all, or
    /// only its columns together can't.
    pub async fn of(&self, topic: &str, record: &SampledRecord, row: u64) -> Vec<Misfit> {
        let fields: Vec<usize> = self
            .plan
            .explain()
            .iter()
            .enumerate()
            .filter(|(_, mapping)| matches!(mapping.source, Source::Field(_)))
            .map(|(at, _)| at)
            .collect();
        let is_positional = self.plan.is_positional();
        // Rows whose fields have no names need all columns; those that are not looked at take anything.
        let text = |except: Option<usize>| -> Vec<ColumnSpec> {
            let chosen = fields.iter().filter(|at| is_positional || except == Some(**at));
            chosen.map(|at| if except == Some(*at) { self.column(*at) } else { self.as_text(*at) }).collect()
        };
        if is_positional && !self.is_read(&text(None), topic, record).await {
            return Vec::new();
        }
        let mut misfits = Vec::new();
        for at in &fields {
            if !self.is_read(&text(Some(*at)), topic, record).await {
                misfits
                    .push(Misfit { column: self.column(*at).name, value: self.value(*at, topic, record, row).await });
            }
        }
        // Where none can be read it isn't the columns' fault.
        if misfits.len() == fields.len() && misfits.iter().all(|misfit| misfit.value.is_none()) {
            misfits.clear();
        }
        misfits
    }

    fn column(&self, at: usize) -> ColumnSpec {
        self.plan.columns()[at].clone()
    }

    fn as_text(&self, at: usize) -> ColumnSpec {
        ColumnSpec { data_type: DataType::String, default_kind: DefaultKind::None, ..self.column(at) }
    }

    fn mapping(&self, columns: &[ColumnSpec]) -> Vec<(String, String)> {
        let named = |name: &str| columns.iter().any(|column| column.name == name);
        self.options.columns.iter().filter(|(column, _)| named(column)).cloned().collect()
    }

    async fn read(
        &self,
        columns: &[ColumnSpec],
        topic: &str,
        record: &SampledRecord,
    ) -> Option<Result<Vec<Block>, ()>> {
        let plan = plan_for(&self.options.format, &self.mapping(columns), columns.to_vec(), self.table).ok()?;
        Some(self.ask.read_alone(&plan, topic, record).await.map_err(|_| ()))
    }

    /// Says whether a message can be read into these columns. If that can't even be tried, it counts as read:
    /// these columns are not known to be the cause.
    async fn is_read(&self, columns: &[ColumnSpec], topic: &str, record: &SampledRecord) -> bool {
        self.read(columns, topic, record).await.is_none_or(|read| read.is_ok())
    }

    async fn value(&self, at: usize, topic: &str, record: &SampledRecord, row: u64) -> Option<String> {
        let mapping = &self.plan.explain()[at];
        let Source::Field(field) = &mapping.source else { return None };
        if self.options.format.name.starts_with("JSON") {
            let rows = rows(message_of(record).value?);
            let row = rows.get(usize::try_from(row).ok()?.checked_sub(1)?)?;
            return value_of(row, field).map(|value| shortened(&value.to_string()));
        }
        let is_positional = self.plan.is_positional();
        let fields = self.plan.explain();
        let fields = fields
            .iter()
            .enumerate()
            .filter(|(other, mapping)| matches!(mapping.source, Source::Field(_)) && (is_positional || *other == at));
        let columns: Vec<ColumnSpec> = fields.map(|(at, _)| self.as_text(at)).collect();
        let position = columns.iter().position(|column| column.name == self.plan.columns()[at].name)?;
        let blocks = self.read(&columns, topic, record).await?.ok()?;
        text_at(&blocks, position, usize::try_from(row).ok()?.checked_sub(1)?)
    }
}

/// Returns the text in one row of blocks that follow each other.
fn text_at(blocks: &[Block], column: usize, mut row: usize) -> Option<String> {
    for block in blocks {
        if row < block.rows() {
            let Layout::Strings(mut strings) = block.column(column)?.layout() else { return None };
            let text = String::from_utf8_lossy(strings.nth(row)?).into_owned();
            return Some(shortened(&format!("{text:?}")));
        }
        row -= block.rows();
    }
    None
}
