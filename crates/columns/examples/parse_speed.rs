//! Prints how fast payloads are read, in MB/s of CPU time on one core (Linux only).
//!
//! Without arguments it reads payloads of its own; with `FORMAT FILE NAME TYPE [NAME TYPE]...` the payload in a file.

use std::time::Duration;

use windrow_columns::{
    read_json_each_row, read_values, Block, ColumnSpec, DataType, DefaultKind, Format, NotParsed, Parsed, ReadPlan,
    ReadSettings,
};

type Reader = fn(&[u8], &ReadPlan) -> Result<Parsed, NotParsed>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first_chunk::<2>() {
        Some(([format, file], columns)) => measure_file(format, file, columns),
        None => measure_own(),
    }
}

fn measure_file(format: &str, file: &str, columns: &[String]) {
    let format = Format::named(format).expect("a format that is read here");
    let payload = std::fs::read(file).expect("a file to read");
    let columns: Vec<(&str, &str)> = columns.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    measure(format.name, &payload, &plan(&columns), format.read);
}

fn measure_own() {
    let plan = plan(&[("id", "UInt64"), ("name", "String"), ("value", "Float64"), ("ts", "DateTime('UTC')")]);
    let zoned = plan_with_zone();
    let json = payload(100_000, |row| {
        format!(
            r#"{{"id":{row},"name":"abc{}","value":{}.5,"ts":"2026-01-01 00:00:{:02}"}}"#,
            row % 97,
            row % 1000,
            row % 60
        ) + "\n"
    });
    let spaced = payload(100_000, |row| {
        format!(
            r#"{{"name": "abc{}", "id": {row}, "value": {}.25, "ts": "2026-01-01T00:00:{:02}Z"}}"#,
            row % 97,
            row % 1000,
            row % 60
        ) + "\n"
    });
    let values = payload(100_000, |row| {
        format!("({row},'abc{}',{}.5,'2026-01-01 00:00:{:02}'),", row % 97, row % 1000, row % 60)
    });
    measure("JSONEachRow, 100,000 rows", &json, &plan, read_json_each_row);
    measure("JSONEachRow, 100,000 rows, keys in another order, spaces", &spaced, &plan, read_json_each_row);
    measure("JSONEachRow, 100,000 rows, Europe/Berlin", &json, &zoned, read_json_each_row);
    measure("VALUES, 100,000 rows", &values, &plan, read_values);
    let one = &json[..json.iter().position(|byte| *byte == b'\n').expect("rows end in newlines") + 1];
    measure("JSONEachRow, one row", one, &plan, read_json_each_row);
    measure_append(&json, &plan);
    report("building a plan of four columns with a time zone", 1000, || {
        plan_with_zone();
        1
    });
}

fn plan(columns: &[(&str, &str)]) -> ReadPlan {
    let columns = columns.iter().map(|(name, type_text)| ColumnSpec {
        name: name.to_string(),
        data_type: DataType::parse(type_text).expect("the types above are known"),
        default_kind: DefaultKind::None,
    });
    ReadPlan::new(columns.collect(), ReadSettings::default())
}

fn plan_with_zone() -> ReadPlan {
    plan(&[("id", "UInt64"), ("name", "String"), ("value", "Float64"), ("ts", "DateTime('Europe/Berlin')")])
}

fn payload(rows: usize, row: impl Fn(usize) -> String) -> Vec<u8> {
    (0..rows).map(row).collect::<String>().into_bytes()
}

fn measure(what: &str, payload: &[u8], plan: &ReadPlan, reader: Reader) {
    report(what, payload.len(), || reader(payload, plan).expect("the payload is plain").block.rows());
}

fn measure_append(payload: &[u8], plan: &ReadPlan) {
    let parsed = read_json_each_row(payload, plan).expect("the payload is plain");
    let types: Vec<DataType> = plan.columns().iter().map(|column| column.data_type.clone()).collect();
    let mut batch = Block::empty(&types);
    report("appending a block of 100,000 rows", parsed.block.bytes(), || {
        batch.clear();
        batch.append(&parsed.block);
        batch.rows()
    });
}

/// What the process has had of its one thread, however busy the machine is.
fn cpu_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has it");
    let nanoseconds = statistics.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first field is a number"))
}

fn report(what: &str, bytes: usize, mut run: impl FnMut() -> usize) {
    let mut best = Duration::MAX;
    let repeats = (20_000_000 / bytes).max(10);
    let mut rows = 0;
    for _ in 0..5 {
        let start = cpu_time();
        for _ in 0..repeats {
            rows = std::hint::black_box(run());
        }
        best = best.min(cpu_time() - start);
    }
    let seconds = best.as_secs_f64() / repeats as f64;
    println!(
        "{what}: {:.0} MB/s, {:.2} million rows/s, {:.0} ns a row",
        bytes as f64 / seconds / 1e6,
        rows as f64 / seconds / 1e6,
        seconds / rows as f64 * 1e9
    );
}
