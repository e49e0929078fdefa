//! Tests of checks of samples, with a backend that can't be asked about formats, like DuckDB.

use crate::SampledRecord;

use super::sample::SampledTopic;
use super::*;
use crate::pipeline::options::FormatOptions;
use crate::pipeline::tables::tests::{description, NoTable};

fn options(format: &str, columns: &[(&str, &str)]) -> PipelineOptions {
    PipelineOptions {
        format: FormatOptions { name: format.to_owned(), ..FormatOptions::default() },
        columns: columns.iter().map(|(column, field)| (column.to_string(), field.to_string())).collect(),
        ..crate::pipeline::options::tests::options()
    }
}

fn topic(messages: &[&str]) -> SampledTopic {
    let record = |(offset, value): (usize, &&str)| SampledRecord {
        partition: 0,
        offset: offset as i64,
        timestamp_ms: 1_700_000_000_000,
        key: None,
        value: Some(value.as_bytes().to_vec()),
        headers: Vec::new(),
    };
    SampledTopic { name: "events".into(), records: messages.iter().enumerate().map(record).collect() }
}

async fn checked(format: &str, columns: &[(&str, &str)], mapping: &[(&str, &str)], messages: &[&str]) -> CheckReport {
    let mut report = CheckReport::default();
    check_table(
        &mut report,
        &options(format, mapping),
        &NoTable::NobodyToAsk,
        &description(columns),
        &[topic(messages)],
    )
    .await;
    report
}

fn column<'r>(report: &'r CheckReport, name: &str) -> &'r CheckedColumn {
    report.columns.iter().find(|column| column.name == name).expect("a column of the table")
}

#[tokio::test]
async fn what_fits_is_shown() {
    let messages = ["{\"id\":1,\"name\":\"x\"}", "{\"id\":2,\"name\":\"y\"}\n{\"id\":3,\"name\":\"z\"}", ""];
    let report = checked(
        "JSONEachRow",
        &[("id", "UInt64"), ("name", "String"), ("o", "UInt64")],
        &[("o", "_offset")],
        &messages,
    )
    .await;
    assert_eq!(report.verdict(), Verdict::Fits);
    assert_eq!(report.guarantee, Some(Guarantee::ExactlyOnce));
    assert_eq!((report.sample.messages, report.sample.rows, report.sample.tombstones), (3, 3, 1));
    assert_eq!(column(&report, "o").source, "_offset");
    assert_eq!(column(&report, "id").messages_with, Some(2));
    let shown = report.sample.rows_read.expect("rows");
    assert_eq!((shown.columns.len(), shown.block.rows()), (3, 3));
    assert!(report.notes.is_empty() && report.unused_fields.is_empty(), "{:?}", report.notes);
}

#[tokio::test]
async fn a_value_of_another_type_is_named_with_its_column() {
    let messages = ["{\"id\":1,\"n\":\"1\"}", "{\"id\":\"abc\",\"n\":2}", "{\"id\":3,\"n\":4}"];
    let report = checked("JSONEachRow", &[("id", "UInt64"), ("n", "UInt64")], &[], &messages).await;
    assert_eq!(report.verdict(), Verdict::DoesNotFit);
    assert_eq!((report.sample.refused_messages, report.sample.rows), (1, 2));
    let refused = &report.sample.refused[0];
    assert_eq!((refused.partition, refused.offset, refused.columns.as_slice()), (0, 1, &["id".to_owned()][..]));
    let problem = column(&report, "id").problem.as_deref();
    assert_eq!(problem, Some("UInt64 can't take the value \"abc\" (at events:0:1)"));
    assert_eq!((column(&report, "id").refused_messages, &column(&report, "n").problem), (1, &None));
}

#[tokio::test]
async fn a_field_without_a_name_is_found_as_well() {
    let report =
        checked("CSV", &[("a", "UInt64"), ("b", "Date"), ("c", "String")], &[], &["1,2026-01-01,x\n", "2,never,y\n"])
            .await;
    assert_eq!(report.sample.refused[0].columns, ["b"]);
    assert_eq!(column(&report, "b").problem.as_deref(), Some("Date can't take the value \"never\" (at events:0:1)"));
    let rubbish = checked("CSV", &[("a", "UInt64"), ("b", "Date")], &[], &["only one field\n"]).await;
    assert!(rubbish.sample.refused[0].columns.is_empty(), "{:?}", rubbish.sample.refused);
}

#[tokio::test]
async fn rubbish_is_nobodys_column() {
    let report =
        checked("JSONEachRow", &[("id", "UInt64"), ("n", "UInt64")], &[], &["{\"id\":", "{\"id\":1,\"n\":2}"]).await;
    assert_eq!((report.verdict(), report.sample.refused_messages), (Verdict::DoesNotFit, 1));
    assert!(report.sample.refused[0].columns.is_empty());
}

#[tokio::test]
async fn fields_and_columns_without_each_other_are_told() {
    let messages = ["{\"id\":1,\"userName\":\"x\",\"extra\":{\"a\":1}}"];
    let report = checked("JSONEachRow", &[("id", "UInt64"), ("user_name", "String")], &[], &messages).await;
    assert_eq!(report.verdict(), Verdict::Fits, "it can be as it is wanted");
    let names: Vec<&str> = report.unused_fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["extra", "userName"]);
    assert_eq!(
        report.notes,
        ["no message of the sample has the field user_name of the column user_name, which gets its default \
          (did you mean columns = { user_name = \"userName\" }?)"]
    );
}

#[tokio::test]
async fn a_mapping_that_cannot_be_is_a_problem() {
    let report = checked("JSONEachRow", &[("id", "UInt64")], &[("idd", "id")], &["{\"id\":1}"]).await;
    assert_eq!(report.verdict(), Verdict::DoesNotFit);
    assert_eq!(report.problems, ["there is no column `idd` in the table, but columns names it"]);
}

#[tokio::test]
async fn why_messages_may_come_twice_is_said() {
    let mut report = CheckReport::default();
    let table = TableDescription {
        no_deduplication: Some("its engine has no window".to_owned()),
        ..description(&[("a", "UInt8")])
    };
    guarantee(&mut report, &options("CSV", &[]), &table);
    assert_eq!(
        (report.guarantee, report.not_exactly_once.as_deref()),
        (Some(Guarantee::AtLeastOnce), Some("its engine has no window"))
    );
    let told = PipelineOptions { exactly_once: false, ..options("CSV", &[]) };
    guarantee(&mut report, &told, &description(&[("a", "UInt8")]));
    assert_eq!(report.not_exactly_once.as_deref(), Some("exactly_once is false"));
}

#[tokio::test]
async fn nobody_is_there() {
    let mut options = options("CSV", &[]);
    options.client.connect_timeout_ms = 1_000;
    options.client.retry_for_ms = 1;
    let report = check(&options, &NoTable::NobodyToAsk).await;
    assert_eq!(report.verdict(), Verdict::Unknown);
    assert_eq!(report.unreachable.len(), 2, "{:?}", report.unreachable);
    assert!(report.columns.is_empty());
}

#[test]
fn names_that_differ_in_their_spelling_are_alike() {
    for (field, wanted, alike) in [
        ("userId", "user_id", true),
        ("event.time", "time", true),
        ("TS", "ts", true),
        ("time", "event.time", false),
        ("a", "b", false),
    ] {
        assert_eq!(is_alike(field, wanted), alike, "{field} {wanted}");
    }
    assert_eq!((toml_key("a-b").as_str(), toml_key("n.a").as_str()), ("a-b", "\"n.a\""));
}

#[tokio::test]
async fn a_schema_says_which_fields_nobody_takes() {
    let folder = std::env::temp_dir().join(format!("windrow-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("event.proto");
    let schema = "syntax = \"proto3\"; message Place { string city = 1; string street = 2; }\n\
                  message Event { uint64 id = 1; Place place = 2; string note = 3; Event cause = 4; }";
    std::fs::write(&file, schema).expect("a file");
    let mut options = options("ProtobufSingle", &[("city", "place.city")]);
    options.format.schema_file = Some(file);
    options.format.message = Some("Event".to_owned());
    let mut report = CheckReport::default();
    let table = description(&[("id", "UInt64"), ("city", "String"), ("more", "UInt8")]);
    check_table(&mut report, &options, &NoTable::NobodyToAsk, &table, &[topic(&["\u{8}\u{1}"])]).await;
    std::fs::remove_dir_all(&folder).expect("the folder was there");
    assert_eq!((report.verdict(), report.sample.rows), (Verdict::Fits, 1), "{:?}", report.problems);
    let names: Vec<&str> = report.unused_fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["place.street", "note", "cause"]);
    assert_eq!(column(&report, "more").source, "nothing, it gets the default of UInt8");
}
