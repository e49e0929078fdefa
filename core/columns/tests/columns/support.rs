use windrow_columns::{
    read_json_each_row, read_values, Block, ColumnSpec, DataType, DefaultKind, NotParsed, NotParsedReason, Parsed,
    ReadPlan, ReadSettings,
};

use crate::render::render_rows;

pub type Reader = fn(&[u8], &ReadPlan) -> Result<Parsed, NotParsed>;

pub fn data_type(text: &str) -> DataType {
    DataType::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn types_of(columns: &[(&str, &str)]) -> Vec<DataType> {
    columns.iter().map(|(_, text)| data_type(text)).collect()
}

pub fn names_of<'a>(columns: &[(&'a str, &str)]) -> Vec<&'a str> {
    columns.iter().map(|(name, _)| *name).collect()
}

/// Reads rows of JSONEachRow, at a server in UTC.
pub fn block_of(columns: &[(&str, &str)], rows: &[&str]) -> Block {
    let specs = columns.iter().map(|(name, text)| ColumnSpec {
        name: (*name).into(),
        data_type: data_type(text),
        default_kind: DefaultKind::None,
    });
    let mut settings = ReadSettings::default();
    settings.set_server_timezone("UTC");
    let plan = ReadPlan::new(specs.collect(), settings);
    read_json_each_row(rows.concat().as_bytes(), &plan).unwrap().block
}

/// Reads columns from `name Type` texts; a name with `=` behind it has a DEFAULT expression.
pub fn columns(texts: &[&str]) -> Vec<ColumnSpec> {
    let column = |text: &&str| {
        let (name, type_text) = text.split_once(' ').expect("a name and a type");
        let (name, default_kind) = match name.strip_suffix('=') {
            Some(name) => (name, DefaultKind::Default),
            None => (name, DefaultKind::None),
        };
        ColumnSpec { name: name.to_string(), data_type: data_type(type_text), default_kind }
    };
    texts.iter().map(column).collect()
}

pub fn settings() -> ReadSettings {
    let mut settings = ReadSettings::default();
    settings.set_server_timezone("Etc/UTC");
    settings
}

pub fn plan(texts: &[&str]) -> ReadPlan {
    ReadPlan::new(columns(texts), settings())
}

/// Returns the rows of a payload as texts, or the reason why the payload was left to ClickHouse.
pub fn rows(reader: Reader, plan: &ReadPlan, payload: &[u8]) -> Result<Vec<String>, NotParsed> {
    let parsed = reader(payload, plan)?;
    Ok(render_rows(&parsed, plan))
}

/// Reads a JSON value into a column of a type.
pub fn json_value(type_text: &str, value: &str) -> Result<String, NotParsedReason> {
    json_value_bytes(type_text, value.as_bytes())
}

pub fn json_value_bytes(type_text: &str, value: &[u8]) -> Result<String, NotParsedReason> {
    let payload = [b"{\"a\":", value, b"}"].concat();
    single(read_json_each_row, type_text, &payload)
}

/// Reads a literal of VALUES into a column of a type.
pub fn sql_value(type_text: &str, value: &str) -> Result<String, NotParsedReason> {
    single(read_values, type_text, format!("({value})").as_bytes())
}

fn single(reader: Reader, type_text: &str, payload: &[u8]) -> Result<String, NotParsedReason> {
    let plan = plan(&[&format!("a {type_text}")]);
    let mut rows = rows(reader, &plan, payload).map_err(|not_parsed| not_parsed.reason)?;
    assert_eq!(rows.len(), 1);
    Ok(rows.remove(0))
}

/// Checks how values of a type are read: `-` stands for "left to ClickHouse".
pub fn check(read: fn(&str, &str) -> Result<String, NotParsedReason>, type_text: &str, cases: &[(&str, &str)]) {
    for (value, expected) in cases {
        let outcome = read(type_text, value).unwrap_or("-".to_string());
        assert_eq!(&outcome, expected, "{value} into {type_text}");
    }
}
