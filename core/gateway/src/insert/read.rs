//! Reading payloads, large ones on several cores.

use std::num::NonZeroUsize;
use std::thread;

use windrow_columns::{Format, Lines, NotParsed, Parsed, ReadPlan};

/// Size of a payload that takes long enough to read to be in the way of other connections' tasks.
pub(super) const LARGE_BYTES: usize = 256 * 1024;
/// Size of a part that is just worth a thread.
const PART_BYTES: usize = 256 * 1024;
const MAX_PARTS: usize = 4;

pub(crate) fn read_payload(format: &Format, payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    match payload.len() > LARGE_BYTES {
        true => tokio::task::block_in_place(|| read_in_parts(format, payload, plan)),
        false => (format.read)(payload, plan),
    }
}

/// Cuts the payload behind line breaks and reads the parts side by side. A line break need not end a row, but if every
/// part reads as whole rows, then so does the payload, and as the same ones; if one doesn't, it is read again in one
/// go.
fn read_in_parts(format: &Format, payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let parts = match format.lines {
        Lines::Unknown => vec![payload],
        Lines::Any | Lines::BeginWith(_) => cut(payload, parts_worthwhile(payload.len())),
    };
    if parts.len() < 2 || !are_rows_alike(format.lines, &parts) {
        return (format.read)(payload, plan);
    }
    let read = thread::scope(|scope| {
        let others: Vec<_> = parts[1..].iter().map(|part| scope.spawn(|| (format.read)(part, plan).ok())).collect();
        let first = (format.read)(parts[0], plan).ok();
        let others = others.into_iter().map(|other| other.join().ok().flatten());
        std::iter::once(first).chain(others).collect::<Option<Vec<Parsed>>>()
    });
    match read.and_then(joined) {
        Some(parsed) => Ok(parsed),
        None => (format.read)(payload, plan),
    }
}

/// Says whether each part by itself would be read as it is read within the whole.
fn are_rows_alike(lines: Lines, parts: &[&[u8]]) -> bool {
    let begins_row = |part: &&[u8]| match (lines, part.trim_ascii_start().first()) {
        (Lines::BeginWith(start), Some(first)) => *first == start,
        _ => true,
    };
    parts.iter().all(begins_row) && !parts[..parts.len() - 1].iter().any(|part| ends_data(part))
}

/// Says whether the part ends in a `;`, which may stand behind the last row, and nowhere else.
fn ends_data(part: &[u8]) -> bool {
    part.trim_ascii_end().ends_with(b";")
}

fn joined(parts: Vec<Parsed>) -> Option<Parsed> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next()?;
    for part in parts.filter(|part| part.block.rows() > 0) {
        if part.present != whole.present {
            return None;
        }
        whole.block.append(&part.block);
    }
    Some(whole)
}

fn parts_worthwhile(bytes: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.min(bytes / PART_BYTES).clamp(1, MAX_PARTS)
}

fn cut(payload: &[u8], parts: usize) -> Vec<&[u8]> {
    let mut cuts = Vec::with_capacity(parts);
    let mut start = 0;
    for part in 1..parts {
        let about = (payload.len() / parts * part).max(start);
        let Some(line_end) = payload[about..].iter().position(|&byte| byte == b'\n') else { break };
        cuts.push(&payload[start..=about + line_end]);
        start = about + line_end + 1;
    }
    cuts.push(&payload[start..]);
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_columns::{read_json_each_row, ColumnSpec, DataType, DefaultKind, ReadSettings};

    fn plan() -> ReadPlan {
        let column = |name: &str, data_type: &str| ColumnSpec {
            name: name.to_owned(),
            data_type: DataType::parse(data_type).unwrap(),
            default_kind: DefaultKind::None,
        };
        ReadPlan::new(vec![column("a", "UInt64"), column("s", "String")], ReadSettings::default())
    }

    fn native(parsed: Parsed, plan: &ReadPlan) -> Vec<u8> {
        let names: Vec<&str> = plan.columns().iter().map(|column| column.name.as_str()).collect();
        let types: Vec<DataType> = plan.columns().iter().map(|column| column.data_type.clone()).collect();
        parsed.block.encode_native(&names, &types)
    }

    #[test]
    fn parts_give_the_same_rows_as_the_whole() {
        let plan = plan();
        let rows: String = (0..30_000).map(|a| format!("{{\"a\":{a},\"s\":\"row {a}\"}}\n")).collect();
        let whole = read_json_each_row(rows.as_bytes(), &plan).unwrap();
        for parts in 1..6 {
            let read: Vec<Parsed> =
                cut(rows.as_bytes(), parts).iter().map(|part| read_json_each_row(part, &plan).unwrap()).collect();
            assert_eq!(native(joined(read).unwrap(), &plan), native_of(&whole, &plan), "{parts} parts");
        }
    }

    fn native_of(parsed: &Parsed, plan: &ReadPlan) -> Vec<u8> {
        native(Parsed { block: parsed.block.clone(), present: parsed.present.clone() }, plan)
    }

    #[test]
    fn a_semicolon_in_the_middle_is_no_end() {
        let plan = plan();
        let mut rows: String = (0..40_000).map(|a| format!("{{\"a\":{a},\"s\":\"row {a}\"}}\n")).collect();
        let middle = cut(rows.as_bytes(), parts_worthwhile(rows.len()).max(2))[0].len() - 1;
        rows.insert(middle, ';');
        assert!(read_in_parts(Format::named("JSONEachRow").unwrap(), rows.as_bytes(), &plan).is_err());
    }

    #[test]
    fn arrays_of_rows_have_no_neighbours() {
        let plan = plan();
        let rows = vec![r#"{"a":"1","s":"row"}"#; 40_000];
        let (array, sequence) = (format!("[{}]\n", rows.join(",")), rows.join("\n") + "\n");
        for name in ["JSONEachRow", "JSONStringsEachRow"] {
            let format = Format::named(name).unwrap();
            for parts in [[&array, &sequence], [&sequence, &array], [&array, &array]] {
                assert!(parts.iter().all(|part| (format.read)(part.as_bytes(), &plan).is_ok()), "each is fine alone");
                assert!(!are_rows_alike(format.lines, &parts.map(|part| part.as_bytes())), "{name}");
            }
            assert!(are_rows_alike(format.lines, &[sequence.as_bytes(), b" ", sequence.as_bytes()]));
            let payload = array.clone() + &sequence;
            assert_eq!(cut(payload.as_bytes(), 2)[0], array.as_bytes());
            assert!(read_in_parts(format, payload.as_bytes(), &plan).is_err(), "{name}");
        }
        let arrays = Format::named("JSONCompactEachRow").unwrap();
        assert!(are_rows_alike(arrays.lines, &cut(b"[1]\n[2]\n[3]\n", 2)));
    }

    #[test]
    fn a_comma_does_not_end_data() {
        let plan = plan();
        let rows: String = (0..2).map(|a| format!("{{\"a\":{a},\"s\":\"{}\"}},", "x".repeat(400_000))).collect();
        let format = Format::named("JSONEachRow").unwrap();
        assert!(!are_rows_alike(format.lines, &[rows.as_bytes(), b"\n;"]));
        assert!(read_in_parts(format, (rows + "\n;").as_bytes(), &plan).is_err());
    }

    #[test]
    fn every_byte_is_in_exactly_one_part() {
        let payload = b"{\"a\":1}\n{\"a\":2}\n\n{\"a\":3}";
        for parts in 1..40 {
            assert_eq!(cut(payload, parts).concat(), payload);
        }
        assert_eq!(cut(b"no line break at all", 4), [b"no line break at all"]);
    }

    #[test]
    fn parts_that_bring_different_columns_are_not_joined() {
        let plan = plan();
        let read = |text: &str| read_json_each_row(text.as_bytes(), &plan).unwrap();
        let mut other = read("{\"a\":2}");
        other.present = windrow_columns::Present::all(1);
        assert!(joined(vec![read("{\"a\":1}"), other]).is_none());
    }
}
