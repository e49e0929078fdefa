use super::*;
use crate::native::input::write_string;

fn block(revision: u64, columns: &[(&str, &str, &[u8])], rows: u64) -> Vec<u8> {
    let mut out = vec![1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF];
    if revision >= revision::OUT_OF_ORDER_BUCKETS {
        out.extend_from_slice(&[3, 0]);
    }
    out.push(0);
    write_varint(&mut out, columns.len() as u64);
    write_varint(&mut out, rows);
    for (name, data_type, values) in columns {
        write_string(&mut out, name);
        write_string(&mut out, data_type);
        if revision >= revision::CUSTOM_SERIALIZATION {
            out.push(0);
        }
        out.extend_from_slice(values);
    }
    out
}

fn plain(columns: &[(&str, &str, &[u8])], rows: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write_varint(&mut out, columns.len() as u64);
    write_varint(&mut out, rows);
    for (name, data_type, values) in columns {
        write_string(&mut out, name);
        write_string(&mut out, data_type);
        out.extend_from_slice(values);
    }
    out
}

/// Reads a block that comes in pieces of `piece` bytes.
fn in_pieces(revision: u64, bytes: &[u8], piece: usize) -> Result<(Vec<u8>, Option<BlockEnd>), Fault> {
    let mut reader = BlockReader::new(revision, 1 << 20);
    reader.begin();
    let (mut out, mut there, mut from) = (Vec::new(), Vec::new(), 0);
    loop {
        let (taken, end) = reader.read(&there, &mut out)?;
        there.drain(..taken);
        if end.is_some() || from == bytes.len() {
            assert!(there.is_empty() || end.is_none());
            return Ok((out, end));
        }
        let to = bytes.len().min(from + piece);
        there.extend_from_slice(&bytes[from..to]);
        from = to;
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn texts(texts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    texts.iter().for_each(|text| write_string(&mut out, text));
    out
}

fn columns() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let long = [vec![200, 1], vec![b'x'; 200], vec![0], vec![1, b'y']].concat();
    let dictionary = [words(&[0x600, 2]), vec![0, 1, b'a'], words(&[3]), vec![0, 1, 1]].concat();
    vec![
        ("n", "UInt32", vec![7; 12]),
        ("s", "String", long),
        ("m", "Nullable(UInt16)", [vec![0, 1, 0], vec![1; 6]].concat()),
        ("a", "Array(String)", [words(&[1, 1, 3]), vec![1, b'a', 0, 1, b'b']].concat()),
        ("t", "Tuple(a UInt8, b String)", [vec![1, 2, 3], vec![0, 0, 1, b'z']].concat()),
        ("p", "Map(String, UInt8)", [words(&[0, 1, 1]), vec![1, b'k'], vec![5]].concat()),
        ("l", "LowCardinality(String)", [words(&[1]), dictionary.clone()].concat()),
        ("al", "Array(LowCardinality(String))", [words(&[1, 3, 3, 3]), dictionary].concat()),
        ("none", "Array(LowCardinality(String))", words(&[1, 0, 0, 0])),
        ("v", "Variant(String, UInt8)", [words(&[0]), vec![1, 255, 0], vec![1, b'q'], vec![9]].concat()),
        ("f", "FixedString(2)", b"abcdef".to_vec()),
        ("q", "QBit(Float32, 9)", vec![1; 3 * 2 * 32]),
        ("x", "Array(Nothing)", [words(&[0, 1, 1]), vec![b'0']].concat()),
    ]
}

/// Columns of types that a head before their values describes.
fn open_columns() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    // The type that all others share goes by a name that begins with S.
    let variant = [vec![1], texts(&["UInt8"]), words(&[0]), vec![1, 0, 255], texts(&["sv"]), vec![9]].concat();
    let paths = |limit: &[u8], form| {
        let dynamic = [words(&[2]), vec![1], texts(&["Int64"]), words(&[0])].concat();
        let head = [words(&[form]), limit.to_vec(), vec![1], texts(&["b"]), dynamic].concat();
        let shared = [words(&[0, 0, 1]), texts(&["p", "v"])].concat();
        [head, vec![1, 2, 3], vec![255, 0, 255], vec![7; 8], shared].concat()
    };
    let flat = [words(&[3]), vec![1], texts(&["k"]), words(&[3]), vec![1], texts(&["String"])].concat();
    let flat = [flat, words(&[0, 1, 1]), vec![0], texts(&["z"])].concat();
    let of_variant = [words(&[0, 1]), vec![1, 0, 255], texts(&["{}", "s"])].concat();
    let nowhere = [words(&[0, 3]), vec![1], texts(&["k"]), words(&[3]), vec![0], vec![1, 255, 1], texts(&["r", "s"])];
    vec![
        ("d", "Dynamic", [words(&[2]), variant.clone()].concat()),
        ("old", "Dynamic(max_types=3)", [words(&[1]), vec![3], variant].concat()),
        (
            "flat",
            "Dynamic",
            [words(&[3]), vec![2], texts(&["String", "UInt8"]), vec![2, 0, 1], texts(&["a"]), vec![7]].concat(),
        ),
        ("j", "JSON", [words(&[1]), texts(&["{}", "", "{}"])].concat()),
        ("paths", "JSON(a UInt8, SKIP x)", paths(&[], 2)),
        ("limited", "JSON(max_dynamic_paths=1, a UInt8)", paths(&[1], 0)),
        ("array", "Array(JSON)", flat),
        ("variant", "Variant(JSON, String)", of_variant),
        // What stood in front of an alternative that no row has is not that of the next column.
        ("nowhere", "Variant(JSON, String)", nowhere.concat()),
    ]
}

fn states() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let sample = |values: &[u8]| [words(&[8192, values.len() as u64]), texts(&["12 3"]), values.to_vec()].concat();
    let latest = [vec![255, 255, 255, 255, 0], vec![2, 0, 0, 0, b'x', 0, 1, 5, 0], vec![255, 255, 255, 255, 0]];
    vec![
        ("count", "AggregateFunction(count)", vec![1, 200, 1, 3]),
        ("sum", "AggregateFunction(sum, Nullable(UInt8))", [vec![0, 1], vec![4; 8], vec![0]].concat()),
        ("uniq", "AggregateFunction(uniqIf, String, UInt8)", vec![0, 0, 0, 1, 9, 9, 9, 9, 0, 0]),
        ("last", "AggregateFunction(argMax, String, UInt16)", latest.concat()),
        ("bits", "AggregateFunction(groupBitmap, UInt8)", vec![0, 1, 7, 1, 2, 9, 9, 0, 0]),
        ("quantile", "AggregateFunction(quantile(0.5), UInt8)", [sample(&[]), sample(&[1, 2]), sample(&[5])].concat()),
        ("texts", "AggregateFunction(groupArray, String)", [vec![0, 2], texts(&["a", "b"]), vec![0]].concat()),
        ("sums", "Array(AggregateFunction(sumOrNull, Int8))", [words(&[0, 0, 2]), vec![6; 18]].concat()),
    ]
}

#[test]
fn a_block_that_is_too_large_is_known_by_its_head() {
    let head = block(revision::NEWEST, &[("n", "UInt64", &[])], 200_000);
    let read = |columns| {
        let mut reader = BlockReader::new(revision::NEWEST, 1 << 20).expecting(RowShape { columns, bytes: 8 });
        reader.begin();
        reader.read(&head, &mut Vec::new()).map(|(_, end)| end)
    };
    assert_eq!(read(1), Err(Fault::TooLarge("an insert")));
    assert_eq!(read(2), Ok(None), "of other columns nothing is known");
}

#[test]
fn a_block_comes_out_plain_in_whatever_pieces_it_comes() {
    let columns = [columns(), open_columns(), states()].concat();
    let columns: Vec<_> = columns.iter().map(|(name, kind, values)| (*name, *kind, values.as_slice())).collect();
    for revision in [revision::OLDEST, revision::CUSTOM_SERIALIZATION, revision::NEWEST] {
        let bytes = block(revision, &columns, 3);
        for piece in [1, 2, 3, 7, 100, bytes.len()] {
            let (out, end) = in_pieces(revision, &bytes, piece).unwrap();
            assert_eq!(end, Some(BlockEnd { columns: columns.len(), rows: 3 }), "{piece} at a time");
            assert_eq!(out, plain(&columns, 3), "{piece} at a time");
        }
        let mut reader = BlockReader::of_payload(1 << 20);
        reader.begin();
        let (payload, mut out) = (plain(&columns, 3), Vec::new());
        assert_eq!(reader.read(&payload, &mut out).unwrap().0, payload.len());
        assert_eq!(out, payload);
        let seen: Vec<_> =
            reader.columns().map(|(name, of)| (String::from_utf8_lossy(name).into_owned(), of.to_owned())).collect();
        assert_eq!(
            seen,
            columns.iter().map(|(name, of, _)| ((*name).to_owned(), (*of).to_owned())).collect::<Vec<_>>()
        );
        for end in 0..bytes.len() {
            assert_eq!(in_pieces(revision, &bytes[..end], 16).unwrap().1, None, "{end} bytes");
        }
    }
}

#[test]
fn the_last_block_has_nothing() {
    let (out, end) = in_pieces(revision::NEWEST, &block(revision::NEWEST, &[], 0), 100).unwrap();
    assert!(out.is_empty() && end.is_some_and(BlockEnd::is_last));
    let header = block(revision::NEWEST, &[("n", "UInt32", &[]), ("l", "LowCardinality(String)", &[])], 0);
    let (_, end) = in_pieces(revision::NEWEST, &header, 100).unwrap();
    assert!(end.is_some_and(|end| !end.is_last()), "a block of no rows is not the end");
}

fn sparse(revision: u64, data_type: &str, gaps: &[u64], values: &[u8], rows: u64) -> Vec<u8> {
    let mut out = vec![0];
    write_varint(&mut out, 1);
    write_varint(&mut out, rows);
    write_string(&mut out, "n");
    write_string(&mut out, data_type);
    out.extend_from_slice(&[1, 1]);
    let (last, before) = gaps.split_last().unwrap();
    before.iter().for_each(|gap| write_varint(&mut out, *gap));
    write_varint(&mut out, *last | SPARSE_END);
    out.extend_from_slice(values);
    let _ = revision;
    out
}

#[test]
fn sparse_columns_are_spread() {
    let revision = revision::NEWEST;
    let cases: [(&str, &[u8], Vec<u8>); 3] = [
        ("UInt16", &[1, 1, 2, 2], [0, 0, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0].to_vec()),
        ("String", &[1, b'a', 2, b'b', b'c'], [&[0, 0, 1, b'a', 0, 2, b'b', b'c', 0][..]].concat()),
        ("Nullable(UInt8)", &[5, 6], [1, 1, 0, 1, 0, 1, 0, 0, 5, 0, 6, 0].to_vec()),
    ];
    for (data_type, values, dense) in cases {
        let bytes = sparse(revision, data_type, &[2, 1, 1], values, 6);
        for piece in [1, 3, 100] {
            let (out, end) = in_pieces(revision, &bytes, piece).unwrap();
            assert_eq!(out, plain(&[("n", data_type, &dense)], 6), "{data_type}");
            assert!(end.is_some());
        }
    }
}

#[test]
fn what_can_not_be_is_refused() {
    let revision = revision::NEWEST;
    let faults = [
        sparse(revision, "UInt16", &[2, 1, 1], &[], 5),
        sparse(revision, "UInt16", &[1 << 40], &[], 1 << 40),
        sparse(revision, "UInt64", &[1 << 30], &[], 1 << 30),
        sparse(revision, "Array(UInt8)", &[0, 0], &[], 1),
        block(revision, &[("j", "JSON", &words(&[4]))], 1),
        block(revision, &[("j", "JSON", &[])], 1 << 40),
        block(revision, &[("d", "Dynamic", &words(&[4]))], 1),
        block(revision, &[("d", "Dynamic", &[words(&[2]), vec![2], texts(&["UInt8", "UInt8"])].concat())], 1),
        block(revision, &[("d", "Dynamic", &[words(&[2]), vec![1], texts(&["Decimal32(1)"])].concat())], 1),
        block(revision, &[("d", "Dynamic", &[words(&[2]), vec![1], texts(&["Nonsense"])].concat())], 1),
        block(revision, &[("d", "Dynamic", &[words(&[3]), vec![255, 255, 4]].concat())], 1),
        block(revision, &[("d", "Dynamic", &[words(&[3]), vec![0, 1]].concat())], 1),
        block(revision, &[("s", "AggregateFunction(1, sumMap, Array(UInt8), Array(UInt8))", &[])], 1),
        block(revision, &[("s", "AggregateFunction(sparkbar(9), UInt8, UInt8)", &[])], 1),
        block(revision, &[("s", "AggregateFunction(groupBitmap, UInt8)", &[2])], 1),
        block(revision, &[("a", "Array(UInt8)", &words(&[2, 1]))], 2),
        block(revision, &[("l", "LowCardinality(UInt8)", &[words(&[1, 0x600, 1]), vec![7], words(&[1])].concat())], 2),
        block(revision, &[("x", "Nonsense", &[])], 1),
        block(revision, &[("v", "Variant(String, UInt8)", &[0, 0, 0, 0, 0, 0, 0, 0, 2])], 1),
        block(revision, &[("l", "LowCardinality(String)", &[2, 0, 0, 0, 0, 0, 0, 0])], 1),
        vec![9],
    ];
    for bytes in faults {
        assert!(in_pieces(revision, &bytes, 100).is_err());
    }
}

#[test]
fn damage_is_told_in_whatever_pieces_it_comes() {
    let columns = [columns(), open_columns(), states()].concat();
    let columns: Vec<_> = columns.iter().map(|(name, kind, values)| (*name, *kind, values.as_slice())).collect();
    let bytes = plain(&columns, 3);
    let read = |bytes: &[u8], piece: usize| {
        let mut reader = BlockReader::of_payload(1 << 20);
        reader.begin();
        let (mut out, mut there) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            there.extend_from_slice(piece);
            let (taken, end) = reader.read(&there, &mut out)?;
            there.drain(..taken);
            if end.is_some() {
                return Ok((out, end));
            }
        }
        Ok::<_, Fault>((out, None))
    };
    let mut random: u64 = 17;
    for _ in 0..3_000 {
        let mut damaged = bytes.clone();
        for _ in 0..2 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 33) as usize % damaged.len();
            damaged[at] = (random >> 25) as u8;
        }
        let (whole, cut) = (read(&damaged, damaged.len()), read(&damaged, 7));
        assert_eq!(whole.is_ok(), cut.is_ok(), "{damaged:?}");
        if let (Ok(whole), Ok(cut)) = (whole, cut) {
            assert_eq!(whole, cut, "{damaged:?}");
        }
    }
}
