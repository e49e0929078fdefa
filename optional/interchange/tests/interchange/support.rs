use std::fs;
use std::path::PathBuf;

use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, NotParsed, Parsed, ReadPlan, ReadSettings};

/// The table that the files in `tests/payloads` were written from.
const COLUMNS: &[(&str, &str)] = &[
    ("n", "UInt32"),
    ("i", "Nullable(Int64)"),
    ("f", "Float64"),
    ("b", "Bool"),
    ("s", "String"),
    ("d", "Date"),
    ("t", "DateTime64(3, 'UTC')"),
    ("c", "Decimal(18, 4)"),
    ("u", "UUID"),
    ("a", "Array(Nullable(Int32))"),
    ("m", "Map(String, UInt64)"),
    ("p", "Tuple(x Int16, y Array(String))"),
];

pub struct Payload {
    pub name: String,
    pub format: &'static Format,
    pub bytes: Vec<u8>,
}

pub fn format(name: &str) -> &'static Format {
    windrow_interchange::format(name).expect("the format is read here")
}

/// Returns every file but the expected rows.
pub fn payloads() -> Vec<Payload> {
    let files = fs::read_dir(folder()).expect("the payloads are in the tree");
    let mut payloads: Vec<Payload> = files
        .filter_map(|file| {
            let path = file.expect("a readable folder").path();
            let format = match path.extension()?.to_str()? {
                "arrows" => format("ArrowStream"),
                "arrow" => format("Arrow"),
                "parquet" => format("Parquet"),
                "avro" => format("Avro"),
                _ => return None,
            };
            let name = path.file_name()?.to_str()?.to_owned();
            Some(Payload { name, format, bytes: fs::read(&path).expect("a readable file") })
        })
        .collect();
    payloads.sort_by(|a, b| a.name.cmp(&b.name));
    payloads
}

pub fn payload(name: &str) -> Payload {
    payloads().into_iter().find(|payload| payload.name == name).expect("the payload is in the tree")
}

/// Returns the rows that ClickHouse stored, as its own Native output.
pub fn expected_native() -> Vec<u8> {
    fs::read(folder().join("rows.native")).expect("the rows are in the tree")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/payloads")
}

pub fn table(format: &Format) -> ReadPlan {
    plan(format, COLUMNS, &[])
}

pub fn plan(format: &Format, columns: &[(&str, &str)], settings: &[(&str, &str)]) -> ReadPlan {
    let columns = columns.iter().map(|(name, data_type)| column(name, data_type, DefaultKind::None));
    plan_of(format, columns.collect(), settings)
}

pub fn plan_of(format: &Format, columns: Vec<ColumnSpec>, settings: &[(&str, &str)]) -> ReadPlan {
    let mut read = ReadSettings::of(format);
    for (name, value) in settings {
        read.set(name, value);
    }
    ReadPlan::new(columns, read)
}

pub fn column(name: &str, data_type: &str, default_kind: DefaultKind) -> ColumnSpec {
    let data_type = DataType::parse(data_type).expect("a type that is known");
    ColumnSpec { name: name.to_owned(), data_type, default_kind }
}

pub fn native(parsed: &Parsed, plan: &ReadPlan) -> Vec<u8> {
    let columns: Vec<&ColumnSpec> = parsed.present.iter().map(|index| &plan.columns()[index]).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
    parsed.block.encode_native(&names, &types)
}

pub fn read(payload: &Payload, plan: &ReadPlan) -> Result<Vec<u8>, NotParsed> {
    (payload.format.read)(&payload.bytes, plan).map(|parsed| native(&parsed, plan))
}
