use super::delimited::{LineRows, Table};
use super::field::FieldKind;
use super::format::{Dialect, Layout, PassthroughFormat};
use super::header::{columns_of, plain_strings};
use super::json::{arrays, objects, JsonRows};
use super::rows::PassthroughRows;
use super::settings::PassthroughSettings;

/// The rules by which payloads of one statement can be joined. Built once for a table, column list and
/// settings.
pub struct PassthroughPlan {
    format: &'static PassthroughFormat,
    csv_delimiter: u8,
    columns: Vec<PassthroughColumn>,
}

pub(super) struct PassthroughColumn {
    pub(super) name: String,
    pub(super) kind: FieldKind,
}

/// A payload that may be joined with others that have the same header.
#[derive(Clone, Debug, PartialEq)]
pub struct Joinable {
    /// The header before the rows, ended so that rows may follow.
    pub header: Vec<u8>,
    /// The rows, at least one.
    pub rows: PassthroughRows,
}

/// The error that it isn't certain whether ClickHouse would read the payload among others as it reads it
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJoinable;

impl PassthroughPlan {
    /// Makes a plan. `columns` are the names and types of all columns that the statement writes, in its
    /// order.
    ///
    /// # Errors
    /// Fails where the settings rule joining out, or it is unclear how a column's type ends a field of the
    /// format.
    pub fn new<'c>(
        columns: impl IntoIterator<Item = (&'c str, &'c str)>,
        settings: &PassthroughSettings,
    ) -> Result<PassthroughPlan, NotJoinable> {
        let columns: Vec<PassthroughColumn> = columns
            .into_iter()
            .map(|(name, type_name)| PassthroughColumn { name: name.to_owned(), kind: FieldKind::of(type_name) })
            .collect();
        let is_unclear = |column: &PassthroughColumn| match settings.format().layout {
            Layout::Delimited(Dialect::Csv) => matches!(column.kind, FieldKind::Tuple | FieldKind::Unknown),
            Layout::Delimited(_) => column.kind == FieldKind::Unknown,
            Layout::Objects | Layout::Arrays => false,
        };
        if !settings.may_join || columns.is_empty() || columns.iter().any(is_unclear) {
            return Err(NotJoinable);
        }
        Ok(PassthroughPlan { format: settings.format(), csv_delimiter: settings.csv_delimiter, columns })
    }

    pub fn format(&self) -> &'static PassthroughFormat {
        self.format
    }

    /// Walks through a whole payload.
    ///
    /// # Errors
    /// Fails where the payload has no rows, or it isn't certain where its rows end, or which columns they
    /// have.
    pub fn join(&self, payload: &[u8]) -> Result<Joinable, NotJoinable> {
        // Some formats skip it at the very beginning, and only there.
        if payload.starts_with(b"\xEF\xBB\xBF") {
            return Err(NotJoinable);
        }
        let joinable = match self.format.layout {
            Layout::Objects => self.of_json(objects(payload)?),
            Layout::Arrays => self.of_json(arrays(payload, self.format.header_rows)?),
            Layout::Delimited(dialect) => Ok(of_lines(self.table(dialect).rows(payload)?)),
        }?;
        // What there is to say of no rows is ClickHouse's to say.
        match joinable.rows.count() {
            0 => Err(NotJoinable),
            _ => Ok(joinable),
        }
    }

    fn table(&self, dialect: Dialect) -> Table<'_> {
        let delimiter = if dialect == Dialect::Csv { self.csv_delimiter } else { b'\t' };
        Table { dialect, delimiter, header_rows: self.format.header_rows, columns: &self.columns }
    }

    fn of_json(&self, rows: JsonRows<'_>) -> Result<Joinable, NotJoinable> {
        let mut header = Vec::new();
        if let Some(names) = rows.header.first() {
            columns_of(plain_strings(names)?.into_iter(), &self.columns)?;
        }
        for row in rows.header {
            header.extend_from_slice(row);
            header.push(b'\n');
        }
        Ok(Joinable { header, rows: PassthroughRows::piece([rows.text, b"\n"].concat(), rows.count) })
    }
}

fn of_lines(rows: LineRows<'_>) -> Joinable {
    let mut text = Vec::with_capacity(rows.text.len() + 1);
    text.extend_from_slice(rows.text);
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    Joinable { header: rows.header.to_vec(), rows: PassthroughRows::piece(text, rows.count) }
}
