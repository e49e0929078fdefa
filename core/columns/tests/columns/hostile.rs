use windrow_columns::{read_json_each_row, read_values, DataType, ReadPlan};

use crate::render::render_rows;
use crate::samples::{mutate, COLUMNS, JSON, VALUES};
use crate::support::{plan, rows, Reader};

#[test]
fn a_payload_cut_off_is_fewer_rows_only_where_rows_end() {
    let plan = plan(COLUMNS);
    for (reader, payload, closing) in
        [(read_json_each_row as Reader, JSON, b'}'), (read_values as Reader, VALUES, b')')]
    {
        let whole = rows(reader, &plan, payload.as_bytes()).unwrap();
        for length in 0..payload.len() {
            let cut = &payload.as_bytes()[..length];
            let Ok(fewer) = rows(reader, &plan, cut) else { continue };
            assert_eq!(fewer, whole[..fewer.len()], "cut at {length}");
            let last = cut.iter().rev().find(|byte| !b" \n,;".contains(byte));
            assert!(last.is_none_or(|last| *last == closing), "cut at {length}, within a row");
        }
    }
}

#[test]
fn an_array_cut_off_is_nothing() {
    let plan = plan(&["a UInt8"]);
    let payload = b" [ {\"a\":1} , {\"a\":2} ] ";
    for length in 0..payload.len() {
        let whole_or_blank = length >= payload.len() - 1 || length <= 1;
        assert_eq!(read_json_each_row(&payload[..length], &plan).is_ok(), whole_or_blank, "cut at {length}");
    }
}

#[test]
fn mutated_payloads_do_no_harm() {
    let plan = plan(COLUMNS);
    for (reader, payload) in [(read_json_each_row as Reader, JSON), (read_values as Reader, VALUES)] {
        let taken = (0..20_000).filter(|seed| survives(reader, &plan, payload.as_bytes(), *seed)).count();
        assert!((100..19_900).contains(&taken), "{taken} of 20,000 mutations were read");
    }
}

/// Says whether the mutated payload was read; if so, its block is whole.
fn survives(reader: Reader, plan: &ReadPlan, payload: &[u8], seed: u64) -> bool {
    let mutated = mutate(payload, &mut fastrand::Rng::with_seed(seed));
    let outcome = std::panic::catch_unwind(|| {
        reader(&mutated, plan).map(|parsed| assert_eq!(render_rows(&parsed, plan).len(), parsed.block.rows())).is_ok()
    });
    outcome.unwrap_or_else(|_| panic!("seed {seed}: {:?}", String::from_utf8_lossy(&mutated)))
}

#[test]
fn random_bytes_do_no_harm() {
    let plan = plan(COLUMNS);
    for seed in 0..5_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..)).collect();
        for reader in [read_json_each_row as Reader, read_values as Reader] {
            let outcome = std::panic::catch_unwind(|| reader(&bytes, &plan).is_ok());
            assert!(outcome.is_ok(), "seed {seed}: {bytes:?}");
        }
    }
}

#[test]
fn mutated_types_do_no_harm() {
    let text = "Tuple(a Array(Nullable(Decimal(9, 3))), `b c` Map(String, Enum8('x' = -1, 'y\\'' = 2)), c DateTime64(3, 'UTC'))";
    let mut parsed = 0;
    for seed in 0..20_000 {
        let mutated = mutate(text.as_bytes(), &mut fastrand::Rng::with_seed(seed));
        let Ok(mutated) = String::from_utf8(mutated) else { continue };
        let Ok(data_type) = DataType::parse(&mutated) else { continue };
        parsed += 1;
        assert_eq!(DataType::parse(&data_type.to_string()).as_ref(), Ok(&data_type), "seed {seed}: {mutated}");
        assert!(DataType::parse(&data_type.native_name()).is_ok(), "seed {seed}: {mutated}");
    }
    assert!(parsed > 100, "{parsed} of 20,000 mutations were types");
}

/// Tests a limit: without it, ten megabytes of `null` could become gigabytes of zeros.
#[test]
fn a_few_bytes_do_not_stand_for_very_many() {
    let plan = plan(&["a UInt8", "long FixedString(5000)"]);
    for payload in [r#"{"long":""}"#, r#"[{"long":"x"}]"#] {
        assert!(read_json_each_row(payload.as_bytes(), &plan).is_err(), "{payload}");
    }
    let long = "x".repeat(4500);
    assert!(read_json_each_row(format!("{{\"long\":\"{long}\"}}").as_bytes(), &plan).is_ok());
    for column in ["a Array(FixedString(5000))", "a Array(Nullable(FixedString(5000)))"] {
        let plan = self::plan(&[column]);
        assert!(read_json_each_row(br#"{"a":[null]}"#, &plan).is_err(), "{column}");
        assert!(read_values(b"([NULL])", &plan).is_err(), "{column}");
        assert!(read_json_each_row(br#"{"a":[]}"#, &plan).is_ok(), "{column}");
    }
}
