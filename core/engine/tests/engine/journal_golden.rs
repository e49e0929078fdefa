//! Tests that the format is unchanged: the files in `golden/` are read, and written again byte for byte. With
//! WINDROW_WRITE_GOLDEN=1 they are made anew. A change of the format needs that, under another version.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::memory_disk::{Files, MemoryDisk};
use windrow_clickhouse::Credentials;
use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, PartitionKey, PassthroughRows, ReadPlan};
use windrow_columns::{ReadSettings, Rows};
use windrow_engine::{
    records::*,
    sink::{BatchId, Destination, Form, Partitioning},
};
use windrow_log::{LogOptions, RecordId, Room};

const OPTIONS: LogOptions = LogOptions { segment_bytes: 4096, max_bytes: 1 << 16, reserve_bytes: 512 };

const INSERTS: u64 = 90;

fn destination(form: Form) -> Destination {
    Destination {
        database: "default".into(),
        table: "events".into(),
        columns: vec!["id".into(), "city".into(), "at".into()],
        form,
        credentials: Credentials { user: "joe".into(), password: String::new() },
        own_account: true,
        roles: vec!["writer".into()],
        quota_key: "key".into(),
        shard: None,
        settings: vec![("insert_null_as_default".into(), "1".into())],
        deduplicates: true,
        is_replicated: false,
        has_views: false,
        hands_on: true,
        partitioning: Some(Partitioning { key: PartitionKey::parse("toYYYYMM(at)", "UTC"), max_per_insert: Some(100) }),
    }
}

const TYPES: [&str; 3] = ["UInt64", "LowCardinality(Nullable(String))", "DateTime('UTC')"];

fn typed() -> (Destination, Rows) {
    let types: Vec<DataType> = TYPES.iter().map(|text| DataType::parse(text).unwrap()).collect();
    let destination = destination(Form::Native { types: types.clone() });
    let columns = destination.columns.iter().zip(types).map(|(name, data_type)| ColumnSpec {
        name: name.clone(),
        data_type,
        default_kind: DefaultKind::None,
    });
    let format = Format::named("JSONEachRow").unwrap();
    let plan = ReadPlan::new(columns.collect(), ReadSettings::of(format));
    let payload = "{\"id\":1,\"city\":\"Oslo\",\"at\":1700000000}\n{\"id\":2,\"city\":null,\"at\":1700000001}\n";
    let parsed = (format.read)(payload.as_bytes(), &plan).unwrap();
    (destination, Rows::Parsed(parsed.block))
}

fn text() -> (Destination, Rows) {
    let rows = PassthroughRows::piece(b"{\"id\":3}\n{\"id\":4}\n".to_vec(), 2);
    (destination(Form::Text { format: "JSONEachRow", header: Vec::new() }), Rows::Passthrough(rows))
}

fn head(number: u64) -> InsertHead {
    InsertHead {
        arrived_micros: 1_700_000_000_000_000 + number,
        query_id: if number.is_multiple_of(2) { QueryId::Given("mine".into()) } else { QueryId::Random(number.into()) },
        payload_bytes: 80,
        ack: [AckLevel::Memory, AckLevel::Disk, AckLevel::Stored][number as usize % 3],
        attempts: number as u32,
        dedup: vec![7; number as usize % 4],
    }
}

fn write() -> Files {
    let disk = MemoryDisk::default();
    let (log, mut committer) = windrow_log::open(disk.clone(), OPTIONS, &mut |_| ()).unwrap();
    let kinds = [typed(), text()].map(|(destination, rows)| {
        let record = ContextRecord { destination: &destination, query: "INSERT INTO events", format: "JSONEachRow" };
        (log.context(encode_context(&record)), rows)
    });
    for number in 0..INSERTS {
        let (context, rows) = &kinds[number as usize % 2];
        log.append(INSERT, Some(context), encode_insert(&head(number), rows), Room::Ordinary).unwrap();
        if number % 3 == 2 {
            committer.turn();
        }
    }
    let members: Vec<RecordId> = (1..=30).map(RecordId).collect();
    let piece = Piece { batch: BatchId(0x0123_4567_89ab_4def_8123_4567_89ab_cdef), members: members.clone() };
    log.append(PIECE, None, encode_piece(&piece), Room::Reserve).unwrap();
    log.append(DONE, None, encode_done(&members), Room::Reserve).unwrap();
    while committer.turn() {}
    log.close();
    while committer.turn() {}
    disk.files()
}

fn golden_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal-1")
}

fn golden() -> Files {
    let entries = std::fs::read_dir(golden_folder()).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn golden_files_are_written_byte_for_byte() {
    let written = write();
    if std::env::var_os("WINDROW_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(golden_folder()).unwrap();
        written.iter().for_each(|(name, bytes)| std::fs::write(golden_folder().join(name), bytes).unwrap());
    }
    let golden = golden();
    assert!(golden.len() >= 3);
    assert_eq!(written.keys().collect::<Vec<_>>(), golden.keys().collect::<Vec<_>>());
    for (name, bytes) in &written {
        assert!(*bytes == golden[name], "{name} is written otherwise than it was");
    }
}

#[test]
fn golden_files_are_read() {
    let mut contexts = BTreeMap::new();
    let (mut inserts, mut others) = (0, Vec::new());
    windrow_log::look(&MemoryDisk::of(&golden()), &mut |record| {
        let Some((key, bytes)) = record.context else {
            others.push((record.kind, record.payload.to_vec()));
            return;
        };
        let context = contexts.entry(key).or_insert_with(|| decode_context(bytes).unwrap());
        let (destination, rows) = if inserts % 2 == 0 { typed() } else { text() };
        assert_eq!(context.destination, destination);
        assert_eq!(record.id, RecordId(inserts + 1));
        let insert = decode_insert(record.payload, context).unwrap();
        assert_eq!(insert, InsertRecord { head: head(inserts), rows });
        inserts += 1;
    })
    .unwrap();
    assert_eq!((inserts, contexts.len(), others.len()), (INSERTS, 2, 2));
    let members: Vec<RecordId> = (1..=30).map(RecordId).collect();
    let piece = decode_piece(&others[0].1).unwrap();
    assert_eq!((others[0].0, piece.members), (PIECE, members.clone()));
    assert_eq!((others[1].0, decode_done(&others[1].1).unwrap().inserts), (DONE, members));
}
