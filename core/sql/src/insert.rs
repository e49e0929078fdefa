//! The head of an INSERT: `INTO [TABLE] t [(columns)] [SETTINGS ..] FORMAT f | VALUES`, and where its data begins.
//!
//! The data begins, after `FORMAT f`, behind blanks (space, tab, form feed) and at most one line end (`\r`, `\n` or
//! both); even a `SETTINGS` there is data. After `VALUES` it begins at the next token. Everything that makes an INSERT
//! more than this is refused with its [`InsertForm`], and then forwarded.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::lexer::TokenKind;
use crate::literal;
use crate::names::TableName;

/// The largest number of columns: no table has more. The limit keeps a hostile list from becoming a vector of
/// a million strings.
const MAX_COLUMNS: usize = 10_000;
const MAX_SETTINGS: usize = 1_000;
const MAX_NUMBER_BYTES: usize = 18;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertStatement {
    pub table: InsertTable,
    /// The columns in the order of the list; `None` stands for all columns. Parts of compound names are
    /// joined by dots: `n.a`, also where `n` names the table.
    pub columns: Option<Vec<String>>,
    /// The columns that `* EXCEPT` leaves out of all columns.
    pub except: Vec<String>,
    /// Settings in the order written (the last of a name counts); strings without quotes, true and false as 1
    /// and 0.
    pub settings: Vec<(String, String)>,
    /// The format's name as written; `Values` for the VALUES clause.
    pub format: String,
    /// Says whether the data stands behind VALUES, and is SQL.
    pub is_values_clause: bool,
    /// The offset at which the data begins; the length of the text if there is none in it.
    pub data_start: usize,
}

/// The table of an INSERT: by its name, or by query parameters as in `{database:Identifier}.{table:Identifier}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertTable {
    pub database: Option<Identifier>,
    pub table: Identifier,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identifier {
    Name(String),
    /// The name of a query parameter whose value is the identifier, taken as it stands.
    Parameter(String),
}

impl InsertTable {
    /// Returns the table's name, with the values of query parameters; `None` if `value_of` doesn't know one
    /// of them.
    pub fn resolve(&self, value_of: impl Fn(&str) -> Option<String>) -> Option<TableName> {
        let resolve = |identifier: &Identifier| match identifier {
            Identifier::Name(name) => Some(name.clone()),
            Identifier::Parameter(parameter) => value_of(parameter),
        };
        let database = match &self.database {
            Some(database) => Some(resolve(database)?),
            None => None,
        };
        Some(TableName { database, table: resolve(&self.table)? })
    }
}

/// The reason why an INSERT is not a plain one with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertForm {
    /// The rows come from a query.
    Select,
    /// The rows go into a table function.
    Function,
    FromInfile,
    /// The column list has `t.*`, `COLUMNS(..)`, or `*` beside something else.
    ColumnMatcher,
    /// The head has `{x:Identifier}` elsewhere than in the place of the table.
    QueryParameter,
    /// A `;` stands directly behind `VALUES` or the format's name.
    Semicolon,
    /// The form is any other, also one that ClickHouse itself would refuse.
    Unusual,
}

/// Parses an INSERT behind the word INSERT.
pub(crate) fn parse(cursor: &mut Cursor) -> Result<InsertStatement, InsertForm> {
    let Target { table, columns, except } = target(cursor)?;
    if cursor.at_keyword("FROM") {
        return Err(InsertForm::FromInfile);
    }
    let settings = if cursor.eat_keyword("SETTINGS") { settings(cursor)? } else { Vec::new() };
    let data = data(cursor)?;
    Ok(InsertStatement {
        table,
        columns,
        except,
        settings: settings.into_iter().map(|setting| (setting.name, setting.value)).collect(),
        format: data.format,
        is_values_clause: data.is_values_clause,
        data_start: data.start,
    })
}

struct Target {
    table: InsertTable,
    columns: Option<Vec<String>>,
    except: Vec<String>,
}

/// Parses `INTO [TABLE] t`.
pub(crate) fn table_behind_insert(cursor: &mut Cursor) -> Result<InsertTable, InsertForm> {
    require(cursor.eat_keyword("INTO"))?;
    cursor.eat_keyword("TABLE");
    if cursor.eat_keyword("FUNCTION") {
        return Err(InsertForm::Function);
    }
    table(cursor)
}

fn target(cursor: &mut Cursor) -> Result<Target, InsertForm> {
    let table = table_behind_insert(cursor)?;
    let (mut named, mut except) = (None, Vec::new());
    if cursor.eat_symbol(b'(') {
        match cursor.eat_symbol(b'*') {
            true => except = all_but(cursor)?,
            false => named = Some(columns(cursor)?),
        }
    }
    Ok(Target { table, columns: named, except })
}

/// Parses the rest of `(*)`, `(* EXCEPT a)` or `(* EXCEPT (a, b))` behind the `*`. Anything else that may
/// follow the `*` is left to ClickHouse.
fn all_but(cursor: &mut Cursor) -> Result<Vec<String>, InsertForm> {
    let matcher = |condition: bool| condition.then_some(()).ok_or(InsertForm::ColumnMatcher);
    let mut except = Vec::new();
    if cursor.eat_keyword("EXCEPT") {
        matcher(!cursor.at_keyword("STRICT"))?;
        let is_list = cursor.eat_symbol(b'(');
        loop {
            except.push(cursor.identifier().ok_or(InsertForm::ColumnMatcher)?);
            if !is_list || !cursor.eat_symbol(b',') {
                break;
            }
            matcher(except.len() < MAX_COLUMNS)?;
        }
        matcher(!is_list || cursor.eat_symbol(b')'))?;
    }
    matcher(cursor.eat_symbol(b')'))?;
    Ok(except)
}

/// A setting of the SETTINGS clause, and its place in the text.
struct Setting {
    name: String,
    value: String,
    span: Range<usize>,
}

/// Returns the text of an INSERT with blanks in place of those of its settings that are `unwanted`: the rest
/// stays where it is. `None` if there is no such setting, or the statement is not understood that far.
pub fn blank_settings(text: &[u8], unwanted: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(text, true);
    if !cursor.eat_keyword("INSERT") {
        return None;
    }
    target(&mut cursor).ok()?;
    let clause_start = cursor.peek().start;
    if !cursor.eat_keyword("SETTINGS") {
        return None;
    }
    let settings = settings(&mut cursor).ok()?;
    let mut blanked = text.to_vec();
    let first_wanted = settings.iter().position(|setting| !unwanted(&setting.name));
    for (at, setting) in settings.iter().enumerate().filter(|(_, setting)| unwanted(&setting.name)) {
        // With each goes a comma: the one behind it, or in front of it if a setting that stays precedes.
        let span = match first_wanted {
            None => clause_start..setting.span.end,
            Some(first) if at < first => setting.span.start..settings[at + 1].span.start,
            Some(_) => settings[at - 1].span.end..setting.span.end,
        };
        blanked[span].fill(b' ');
    }
    settings.iter().any(|setting| unwanted(&setting.name)).then_some(blanked)
}

/// Returns the settings of a SET that says nothing else. `None` if there is anything in it that is not a
/// plain value.
pub fn settings_of_set(text: &[u8]) -> Option<Vec<(String, String)>> {
    let mut cursor = Cursor::new(text, false);
    if !cursor.eat_keyword("SET") {
        return None;
    }
    let settings = settings(&mut cursor).ok()?;
    cursor.eat_symbol(b';');
    (cursor.peek().kind == TokenKind::End)
        .then(|| settings.into_iter().map(|setting| (setting.name, setting.value)).collect())
}

fn table(cursor: &mut Cursor) -> Result<InsertTable, InsertForm> {
    let first = identifier(cursor)?;
    if !cursor.eat_symbol(b'.') {
        return Ok(InsertTable { database: None, table: first });
    }
    Ok(InsertTable { database: Some(first), table: identifier(cursor)? })
}

fn identifier(cursor: &mut Cursor) -> Result<Identifier, InsertForm> {
    if !cursor.eat_symbol(b'{') {
        return cursor.identifier().map(Identifier::Name).ok_or(InsertForm::Unusual);
    }
    let parameter = cursor.identifier().ok_or(InsertForm::Unusual)?;
    require(cursor.eat_symbol(b':') && cursor.eat_keyword("Identifier") && cursor.eat_symbol(b'}'))?;
    Ok(Identifier::Parameter(parameter))
}

fn require(condition: bool) -> Result<(), InsertForm> {
    condition.then_some(()).ok_or(InsertForm::Unusual)
}

fn placeholder_or_unusual(cursor: &mut Cursor) -> InsertForm {
    if cursor.at_symbol(b'{') {
        InsertForm::QueryParameter
    } else {
        InsertForm::Unusual
    }
}

fn columns(cursor: &mut Cursor) -> Result<Vec<String>, InsertForm> {
    let mut names = Vec::new();
    loop {
        if !names.is_empty() && cursor.eat_symbol(b')') {
            return Ok(names);
        }
        require(names.len() < MAX_COLUMNS)?;
        names.push(column(cursor)?);
        if cursor.eat_symbol(b')') {
            return Ok(names);
        }
        match cursor.peek().kind {
            TokenKind::Symbol(b',') => cursor.take(),
            // `* EXCEPT`, `COLUMNS('x')`.
            TokenKind::Symbol(b'(') => return Err(InsertForm::ColumnMatcher),
            _ => return Err(InsertForm::Unusual),
        };
    }
}

fn column(cursor: &mut Cursor) -> Result<String, InsertForm> {
    let mut name = String::new();
    loop {
        if cursor.at_symbol(b'*') {
            return Err(InsertForm::ColumnMatcher);
        }
        match cursor.identifier() {
            Some(part) => name.push_str(&part),
            None => return Err(placeholder_or_unusual(cursor)),
        }
        if !cursor.eat_symbol(b'.') {
            return Ok(name);
        }
        name.push('.');
    }
}

fn settings(cursor: &mut Cursor) -> Result<Vec<Setting>, InsertForm> {
    let mut settings = Vec::new();
    loop {
        require(settings.len() < MAX_SETTINGS)?;
        let start = cursor.peek().start;
        let Some(name) = cursor.identifier() else { return Err(placeholder_or_unusual(cursor)) };
        if name.starts_with("param_") {
            return Err(InsertForm::QueryParameter);
        }
        require(cursor.eat_symbol(b'='))?;
        let value = setting_value(cursor)?;
        settings.push(Setting { name, value, span: start..cursor.previous_end() });
        if !cursor.eat_symbol(b',') {
            return Ok(settings);
        }
    }
}

/// Reads the value of a setting. Accepts only literals that mean the same when they are sent as an HTTP
/// parameter.
fn setting_value(cursor: &mut Cursor) -> Result<String, InsertForm> {
    let text = cursor.text();
    let sign = if cursor.eat_symbol(b'-') { "-" } else { "" };
    let token = cursor.peek();
    let value = match token.kind {
        TokenKind::Number => plain_number(token.bytes(text)).map(|digits| format!("{sign}{digits}")),
        TokenKind::String | TokenKind::HereDoc if sign.is_empty() => literal::string(&token, text),
        TokenKind::Word if sign.is_empty() && token.is_keyword(text, "true") => Some("1".to_owned()),
        TokenKind::Word if sign.is_empty() && token.is_keyword(text, "false") => Some("0".to_owned()),
        _ => None,
    };
    let Some(value) = value else { return Err(placeholder_or_unusual(cursor)) };
    cursor.take();
    Ok(value)
}

/// Accepts `10` or `0.5`; not `010`, `0x10`, `1e3`, `1_000` or more digits than fit an integer: these are
/// read differently as a parameter.
fn plain_number(bytes: &[u8]) -> Option<&str> {
    let digits = std::str::from_utf8(bytes).ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let fits = digits.len() <= MAX_NUMBER_BYTES;
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    (is_plain(whole) && is_plain(fraction) && fits && !leading_zero).then_some(digits)
}

struct Data {
    format: String,
    is_values_clause: bool,
    start: usize,
}

fn data(cursor: &mut Cursor) -> Result<Data, InsertForm> {
    if cursor.eat_keyword("VALUES") {
        return values(cursor);
    }
    if cursor.eat_keyword("FORMAT") {
        return format(cursor);
    }
    if cursor.at_keyword("SELECT") || cursor.at_keyword("WITH") || cursor.at_symbol(b'(') {
        return Err(InsertForm::Select);
    }
    Err(InsertForm::Unusual)
}

fn values(cursor: &mut Cursor) -> Result<Data, InsertForm> {
    let next = cursor.peek();
    if next.is_symbol(b';') {
        return Err(InsertForm::Semicolon);
    }
    let start = if next.kind == TokenKind::End { cursor.text().len() } else { next.start };
    Ok(Data { format: "Values".to_owned(), is_values_clause: true, start })
}

fn format(cursor: &mut Cursor) -> Result<Data, InsertForm> {
    let Some(format) = cursor.identifier() else { return Err(placeholder_or_unusual(cursor)) };
    let head_end = cursor.previous_end();
    let rest = &cursor.text()[head_end..];
    if rest.first() == Some(&b';') {
        return Err(InsertForm::Semicolon);
    }
    let skipped = data_offset(rest);
    if cursor.may_continue() && skipped == rest.len() && rest.last() != Some(&b'\n') {
        cursor.starve();
    }
    Ok(Data { format, is_values_clause: false, start: head_end + skipped })
}

fn data_offset(after_format: &[u8]) -> usize {
    let mut offset = after_format.iter().take_while(|b| matches!(b, b' ' | b'\t' | 0x0C)).count();
    offset += usize::from(after_format.get(offset) == Some(&b'\r'));
    offset += usize::from(after_format.get(offset) == Some(&b'\n'));
    offset
}
