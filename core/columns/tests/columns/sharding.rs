//! The shard of each row of a block. `tests/cluster/test_sharding_keys.py` asks a real ClickHouse about far
//! more.

use windrow_columns::{cut_by_shard, Block, DataType, Rows, ShardingKey};

use crate::support::{block_of, names_of, types_of};

const COLUMNS: [(&str, &str); 12] = [
    ("a", "Int64"),
    ("i", "Int8"),
    ("u", "UInt64"),
    ("s", "String"),
    ("l", "LowCardinality(String)"),
    ("d", "Date"),
    ("t", "DateTime"),
    ("f", "Float64"),
    ("g", "UUID"),
    ("x", "DateTime64(3)"),
    ("n", "Nullable(UInt64)"),
    ("w", "Date32"),
];
const ROWS: [&str; 4] = [
    r#"{"a":-1,"i":-1,"u":18446744073709551615}"#,
    r#"{"a":7,"i":7,"u":7,"s":"a","l":"a","d":"2024-02-29","t":"2024-02-29 23:59:59","f":1.5,
        "g":"61f0c404-5cb3-11e7-907b-a6006ad3dba0","x":"2024-02-29 23:59:59.999"}"#,
    r#"{"a":-9223372036854775808,"i":-128,"s":"windrow","l":"windrow","d":"2149-06-06","t":"2106-02-07 06:28:15","f":-0.25,
        "g":"ffffffff-ffff-ffff-ffff-ffffffffffff","x":"1969-12-31 23:59:59.999"}"#,
    r#"{"a":1000000007,"i":127,"u":1000000007,"s":"a string of more than thirty-two bytes, but of less than 64","l":"x",
        "d":"1999-12-31","t":"1999-12-31 12:00:00","f":1e300,"g":"12345678-9abc-def0-1234-56789abcdef0",
        "x":"2000-01-01 00:00:00.001"}"#,
];
const WEIGHTS: [u32; 5] = [7, 11, 0, 3, 16];
/// The shards, by number from 1, in which a Distributed table of ClickHouse 26.7.2 with these keys stored
/// these rows.
const SHARDS: &[(&str, [u32; 4])] = &[
    ("a", [2, 2, 1, 2]),
    ("i", [1, 2, 5, 2]),
    ("u", [2, 2, 1, 2]),
    ("cityHash64(u)", [1, 5, 1, 4]),
    ("cityHash64(i)", [5, 5, 2, 2]),
    ("cityHash64(s)", [1, 5, 2, 2]),
    ("cityHash64(l, d)", [5, 2, 5, 5]),
    ("cityHash64(a, s, t, f, g, x)", [2, 5, 4, 1]),
    ("sipHash64(i, s)", [1, 5, 5, 5]),
    ("xxHash64(s)", [1, 5, 1, 5]),
    ("xxHash32(s, i)", [2, 5, 5, 5]),
    ("xxh3(g)", [4, 5, 5, 1]),
    ("murmurHash3_64(s, u)", [2, 2, 5, 5]),
    ("intHash32(i)", [2, 5, 2, 1]),
    ("intHash64(a) % 1000", [5, 2, 5, 2]),
    ("a % 7", [1, 1, 1, 1]),
    ("positiveModulo(a, 7)", [1, 1, 1, 1]),
    ("intDiv(a, 10)", [1, 1, 5, 5]),
    ("a + 1", [1, 2, 2, 2]),
    ("-i", [1, 1, 5, 5]),
    ("(i * i) - u", [1, 1, 5, 1]),
    ("toYYYYMM(d)", [2, 2, 2, 1]),
    ("toYYYYMMDD(t)", [1, 2, 5, 4]),
    ("cityHash64(toDate(t))", [1, 5, 1, 5]),
    ("cityHash64(toString(a))", [1, 2, 1, 5]),
    ("toUInt8(a)", [5, 2, 1, 2]),
    ("bitAnd(u, 6)", [1, 1, 1, 1]),
    ("cityHash64((s, 'salt'), 7, -7)", [5, 5, 1, 1]),
];

fn types() -> Vec<DataType> {
    types_of(&COLUMNS)
}

fn names() -> Vec<&'static str> {
    names_of(&COLUMNS)
}

fn block(rows: &[&str]) -> Block {
    block_of(&COLUMNS, rows)
}

fn shards_of(key: &str, timezone: &str, block: &Block, weights: &[u32]) -> Option<Vec<u32>> {
    ShardingKey::parse(key, timezone)?.shards_of_rows(&names(), &types(), block, weights, 0)
}

fn shards(key: &str) -> Option<Vec<u32>> {
    shards_of(key, "UTC", &block(&ROWS), &WEIGHTS)
}

#[test]
fn rows_go_where_clickhouse_stored_them() {
    for (key, expected) in SHARDS {
        assert_eq!(shards(key), Some(expected.map(|number| number - 1).to_vec()), "{key}");
    }
}

#[test]
fn what_is_not_sure_is_not_guessed() {
    for key in [
        "",
        "7",
        "-7",
        "cityHash64('x')",
        "cityHash64()",
        "missing",
        "cityHash64(a, missing)",
        "s",
        "f",
        "d",
        "t",
        "g",
        "n",
        "w",
        "cityHash64(n)",
        "cityHash64((n, 1))",
        "a % 0",
        "a % -7",
        "a % 65536",
        "a % u",
        "a % (3 + 4)",
        "intDiv(i, 128)",
        "s % 7",
        "halfMD5(s)",
        "lower(s)",
        "cityHash64(s, 1.5)",
        "cityHash64(a AS b)",
        "rand() % 2",
        "cityHash64(rand())",
        "now()",
        "toYYYYMM(s)",
        "toYYYYMM(t, 'Asia/Tokyo')",
        "toYYYYMM(d, 'UTC')",
        "toUnixTimestamp(d)",
        "toUInt64(s)",
        "toString(a)",
        "toDate(t)",
        "cityHash64(toDate(w), toDate(missing))",
        "(a, s)",
        "tuple()",
        "CAST(a, 'String')",
        "CAST(a, 'UInt128')",
        "a.null",
    ] {
        assert_eq!(shards(key), None, "{key}");
    }
    assert!(shards("toYYYYMM(t, 'UTC')").is_some());
    assert_eq!(shards_of("toYYYYMM(t)", "Europe/Berlin", &block(&ROWS), &WEIGHTS), None, "not the server's zone alone");
    let none: Option<Vec<u32>> = Some(vec![]);
    assert_eq!(shards_of("a", "UTC", &block(&[]), &WEIGHTS), none);
    for weights in [&[][..], &[0, 0], &[u32::MAX, 1]] {
        assert_eq!(shards_of("a", "UTC", &block(&ROWS), weights), None, "{weights:?}");
    }
}

#[test]
fn types_that_are_not_the_blocks_are_no_danger() {
    let (block, mut types) = (block(&ROWS), types());
    types.rotate_left(1);
    for (key, _) in SHARDS {
        let key = ShardingKey::parse(key, "UTC").unwrap();
        key.shards_of_rows(&names(), &types, &block, &WEIGHTS, 0);
        key.shards_of_rows(&names(), &types[..2], &block, &WEIGHTS, 0);
    }
}

#[test]
fn days_that_no_date32_is_are_not_guessed() {
    let key = ShardingKey::parse("toYYYYMM(w)", "UTC").unwrap();
    let of_day = |day: i32| {
        let bytes = [b"\x01\x01\x01w\x06Date32".as_slice(), &day.to_le_bytes()].concat();
        let native = windrow_columns::decode_native(&bytes, windrow_columns::NativeLimits::default()).unwrap();
        key.shards_of_rows(&native.names, &native.types, &native.block, &[1; 100], 0)
    };
    assert_eq!(of_day(-25_567), Some(vec![1]), "190001 % 100");
    assert_eq!(of_day(120_529), Some(vec![12]));
    assert_eq!([-25_568, 120_530, i32::MIN, i32::MAX].map(of_day), [None, None, None, None]);
}

#[test]
fn random_keys_go_where_the_draw_says() {
    for text in ["rand()", "rand32()", "rand64()", "rand(a)"] {
        let key = ShardingKey::parse(text, "UTC").unwrap();
        assert!(key.is_random() && key.columns().next().is_none(), "{text}");
        let shard = |draw| key.shards_of_rows(&names(), &types(), &block(&ROWS), &WEIGHTS, draw).unwrap();
        assert_eq!(shard(6), [0; 4]);
        assert_eq!(shard(7), [1; 4]);
        assert_eq!(shard(18), [3; 4], "the third one takes nothing");
        assert_eq!(shard(36), [4; 4]);
        assert_eq!(shard(37), [0; 4]);
    }
}

#[test]
fn the_columns_of_a_key_are_told() {
    let key = ShardingKey::parse("cityHash64(a, (toDate(t), 'x')) + ((-`odd, name`) % 7)", "UTC").unwrap();
    assert_eq!(key.columns().collect::<Vec<_>>(), ["a", "t", "odd, name"]);
    assert!(!key.is_random());
    assert_eq!(key.expression(), "cityHash64(a, (toDate(t), 'x')) + ((-`odd, name`) % 7)");
}

#[test]
fn no_cut_of_a_key_and_no_change_in_it_is_a_danger() {
    let block = block(&ROWS);
    let whole = "toUInt64(cityHash64((`odd, name`, 'x'), toYYYYMM(t, 'UTC'), intDiv(a, 8)) + (-(i % 4)))";
    assert!(ShardingKey::parse(whole, "UTC").is_some());
    for at in "toUInt64(".len()..whole.len() {
        assert_eq!(ShardingKey::parse(&whole[..at], "UTC"), None, "{}", &whole[..at]);
        ShardingKey::parse(&whole[at..], "UTC");
    }
    let texts: Vec<&str> = SHARDS.iter().map(|(key, _)| *key).chain([whole]).collect();
    let alphabet: Vec<char> = texts.concat().chars().chain("\\é\0[]/=".chars()).collect();
    let mut random = fastrand::Rng::with_seed(20261);
    for _ in 0..20_000 {
        let mut text: Vec<char> = texts[random.usize(..texts.len())].chars().collect();
        for _ in 0..random.usize(1..4) {
            let (at, what) = (random.usize(..=text.len()), alphabet[random.usize(..alphabet.len())]);
            match random.u8(..3) {
                0 => text.insert(at, what),
                1 if at < text.len() => text[at] = what,
                _ if at < text.len() => drop(text.remove(at)),
                _ => {}
            }
        }
        shards_of(&text.iter().collect::<String>(), "UTC", &block, &WEIGHTS);
    }
}

#[test]
fn rows_are_cut_in_their_order() {
    let whole = block(&ROWS);
    let parts = |rows: Rows, shards: &[u32]| -> Vec<(u32, Block)> {
        let parts = cut_by_shard(rows, shards, 5).into_iter();
        parts.map(|(shard, rows)| (shard, rows.to_block().unwrap().into_owned())).collect()
    };
    let of = |rows: &[usize]| block(&rows.iter().map(|row| ROWS[*row]).collect::<Vec<_>>());
    let expected = vec![(1, of(&[1])), (4, of(&[0, 2, 3]))];
    assert_eq!(parts(Rows::Parsed(whole.clone()), &[4, 1, 4, 4]), expected);
    let blocks = Rows::Blocks(vec![of(&[0, 1]), of(&[2]), of(&[]), of(&[3])]);
    assert_eq!(parts(blocks, &[4, 1, 4, 4]), expected);
    assert_eq!(parts(Rows::Parsed(of(&[])), &[]), []);
}

#[test]
fn rows_of_one_shard_are_not_copied() {
    for rows in [&ROWS[..], &ROWS[1..2]] {
        let whole = block(rows);
        let (before, count) = (Rows::Blocks(vec![whole.clone(), whole.clone()]), 2 * rows.len());
        let address = |rows: &Rows| rows.blocks().unwrap().as_ptr();
        let at = address(&before);
        let parts = cut_by_shard(before, &vec![2; count], 3);
        assert!(matches!(&parts[..], [(2, rows)] if address(rows) == at && rows.blocks().unwrap().len() == 2));
    }
}

#[test]
fn random_cuts_lose_nothing() {
    let mut random = fastrand::Rng::with_seed(20261);
    for _ in 0..200 {
        let rows: Vec<&str> = (0..random.usize(..40)).map(|_| ROWS[random.usize(..ROWS.len())]).collect();
        let shards: Vec<u32> = rows.iter().map(|_| random.u32(..4)).collect();
        for (shard, part) in cut_by_shard(Rows::Parsed(block(&rows)), &shards, 4) {
            let own: Vec<&str> =
                rows.iter().zip(&shards).filter(|(_, of)| **of == shard).map(|(row, _)| *row).collect();
            assert!(!own.is_empty());
            assert_eq!(part, Rows::Parsed(block(&own)));
        }
    }
}
