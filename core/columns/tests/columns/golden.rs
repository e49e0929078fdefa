//! Payloads that ClickHouse 26.7 rendered: the sample's rows in every binary format.

use windrow_columns::{read_json_each_row, Format, ReadPlan};

use crate::samples::{mutate, COLUMNS, JSON};
use crate::support::{plan, rows};

/// Types that ClickHouse writes in MsgPack.
const WRITABLE: &str = "pt Point";
const NOT_IN_MSGPACK: &[&str] = &["ti Time", "iv IntervalDay", "va Variant(String, UInt8)"];

struct Golden {
    format: &'static str,
    payload: &'static [u8],
    /// The number of shorter payloads that are whole ones: none, if the first bytes say how much follows.
    whole_cuts: usize,
}

const GOLDEN: &[Golden] = &[
    Golden { format: "Native", payload: include_bytes!("../golden/native"), whole_cuts: 1 },
    Golden { format: "RowBinary", payload: include_bytes!("../golden/row_binary"), whole_cuts: 3 },
    Golden {
        format: "RowBinaryWithNamesAndTypes",
        payload: include_bytes!("../golden/row_binary_with_names_and_types"),
        whole_cuts: 3,
    },
    Golden { format: "MsgPack", payload: include_bytes!("../golden/msgpack"), whole_cuts: 3 },
];

impl Golden {
    fn plan(&self) -> ReadPlan {
        // The sample's last column has a DEFAULT, which ClickHouse had computed.
        let mut columns: Vec<String> = COLUMNS.iter().map(|column| column.replacen("opt=", "opt", 1)).collect();
        if self.format != "MsgPack" {
            columns.extend(NOT_IN_MSGPACK.iter().map(|column| column.to_string()));
        }
        columns.push(WRITABLE.to_string());
        plan(&columns.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn format(&self) -> &'static Format {
        Format::named(self.format).expect("the format is read here")
    }
}

#[test]
fn every_format_gives_the_rows_that_json_gives() {
    for golden in GOLDEN {
        let plan = golden.plan();
        let expected = rows(read_json_each_row, &plan, JSON.as_bytes()).unwrap();
        let found = rows(golden.format().read, &plan, golden.payload);
        assert_eq!(found.as_ref(), Ok(&expected), "{}", golden.format);
    }
}

#[test]
fn a_payload_cut_off_is_fewer_rows_only_where_rows_end() {
    for golden in GOLDEN {
        let (plan, read) = (golden.plan(), golden.format().read);
        let whole = rows(read, &plan, golden.payload).unwrap();
        let mut whole_cuts = 0;
        for length in 0..golden.payload.len() {
            if let Ok(fewer) = rows(read, &plan, &golden.payload[..length]) {
                assert_eq!(fewer, whole[..fewer.len()], "{} cut at {length}", golden.format);
                whole_cuts += 1;
            }
        }
        assert_eq!(whole_cuts, golden.whole_cuts, "{}", golden.format);
    }
}

#[test]
fn mutated_payloads_do_no_harm() {
    for golden in GOLDEN {
        let (plan, read) = (golden.plan(), golden.format().read);
        let survives = |seed: &u64| {
            let mutated = mutate(golden.payload, &mut fastrand::Rng::with_seed(*seed));
            let outcome = std::panic::catch_unwind(|| rows(read, &plan, &mutated).is_ok());
            outcome.unwrap_or_else(|_| panic!("{} seed {seed}: {mutated:?}", golden.format))
        };
        let taken = (0..5_000).filter(survives).count();
        assert!((50..4_950).contains(&taken), "{}: {taken} of 5,000 mutations were read", golden.format);
    }
}

#[test]
fn random_bytes_do_no_harm() {
    for golden in GOLDEN {
        let (plan, read) = (golden.plan(), golden.format().read);
        for seed in 0..2_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let bytes: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..)).collect();
            let outcome = std::panic::catch_unwind(|| read(&bytes, &plan).is_ok());
            assert!(outcome.is_ok(), "{} seed {seed}: {bytes:?}", golden.format);
        }
    }
}
