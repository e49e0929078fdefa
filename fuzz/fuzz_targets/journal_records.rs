#![no_main]
//! Reads records of the journal, of any bytes. The first byte chooses the kind; inserts are read with a
//! context of every form.

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use windrow_clickhouse::Credentials;
use windrow_columns::DataType;
use windrow_engine::{
    records::*,
    sink::{Destination, Form},
};

static CONTEXTS: LazyLock<[RecordedContext; 2]> = LazyLock::new(|| {
    let types = ["UInt64", "LowCardinality(String)", "Array(Nullable(String))", "Map(String, UInt8)"];
    let types = types.map(|text| DataType::parse(text).expect("the types are known")).to_vec();
    let text = Form::Text { format: "CSV", header: Vec::new() };
    [Form::Native { types }, text].map(|form| decode_context(&context(form)).expect("what was encoded can be decoded"))
});

fn context(form: Form) -> Vec<u8> {
    let destination = Destination {
        database: "d".into(),
        table: "t".into(),
        columns: ["a", "b", "c", "d"].map(String::from).to_vec(),
        form,
        credentials: Credentials { user: "u".into(), password: String::new() },
        own_account: false,
        roles: Vec::new(),
        quota_key: String::new(),
        shard: None,
        settings: Vec::new(),
        deduplicates: false,
        is_replicated: true,
        has_views: false,
        hands_on: false,
        partitioning: None,
    };
    encode_context(&ContextRecord { destination: &destination, query: "q", format: "CSV" })
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, payload)) = input.split_first() else { return };
    match choice % 7 {
        0 => drop(decode_context(payload)),
        1 => drop(decode_piece(payload)),
        2 => drop(decode_done(payload)),
        3 => {
            let Ok(stream) = decode_stream(payload) else { return };
            assert_eq!(decode_stream(&encode_stream(&stream)), Ok(stream));
        }
        4 => {
            let Ok(message) = decode_message(payload) else { return };
            assert_eq!(decode_message(&encode_message(&message)), Ok(message));
        }
        form => {
            let context = &CONTEXTS[usize::from(form - 5)];
            let Ok(insert) = decode_insert(payload, context) else { return };
            let again = decode_insert(&encode_insert(&insert.head, &insert.rows), context);
            assert_eq!(again.expect("what was encoded can be decoded"), insert);
        }
    }
});
