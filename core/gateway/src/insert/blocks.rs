//! Payloads of the format Native that pass through: blocks with types that are not read here.
//!
//! A body may hold many blocks, each with its own names, types and forms of values. So blocks of many inserts
//! stand side by side in one body, if it is certain where each of them ends, and if each has names and types
//! that its table is written with.

use windrow_clickhouse::native::BlockReader;
use windrow_columns::{DataType, PassthroughRows};

/// Names and types by which payloads of one statement are recognised as blocks of its columns.
pub(crate) struct BlocksPlan {
    columns: Vec<(String, String)>,
}

/// Blocks that may stand beside those of other inserts.
pub(crate) struct JoinableBlocks {
    /// Rows of the blocks, at least one.
    pub(crate) rows: PassthroughRows,
    /// Says whether each block has all columns that the statement writes.
    pub(crate) are_whole: bool,
}

impl BlocksPlan {
    /// Makes the plan. `columns` has the names and types of all columns that the statement writes.
    pub(crate) fn new(columns: Vec<(String, String)>) -> BlocksPlan {
        BlocksPlan { columns }
    }

    /// Reads through a whole payload. `None`: it has no rows, or isn't certain to be blocks of these columns.
    pub(crate) fn join(&self, payload: &[u8]) -> Option<JoinableBlocks> {
        let mut reader = BlockReader::of_payload(payload.len());
        let (mut blocks, mut rows, mut are_whole) = (Vec::with_capacity(payload.len()), 0, true);
        let mut left = payload;
        while !left.is_empty() {
            let begin = blocks.len();
            reader.begin();
            let (taken, end) = reader.read(left, &mut blocks).ok()?;
            let end = end?;
            left = &left[taken..];
            if end.columns == 0 {
                // ClickHouse reads no further than this, and would leave out what stands behind it.
                return None;
            }
            if end.rows == 0 {
                blocks.truncate(begin);
                continue;
            }
            are_whole &= self.has_columns(reader.columns())? == self.columns.len();
            rows += usize::try_from(end.rows).ok()?;
        }
        (rows > 0).then(|| JoinableBlocks { rows: PassthroughRows::piece(blocks, rows), are_whole })
    }

    /// Counts the plan's columns among these. `None`: one is unknown, is there twice, or has another type.
    fn has_columns<'b>(&self, columns: impl Iterator<Item = (&'b [u8], &'b str)>) -> Option<usize> {
        let mut seen = vec![false; self.columns.len()];
        let mut expected = 0;
        for (name, data_type) in columns {
            let is_named = |(known, _): &(String, String)| known.as_bytes() == name;
            let at = match self.columns.get(expected).is_some_and(is_named) {
                true => expected,
                false => self.columns.iter().position(is_named)?,
            };
            if std::mem::replace(&mut seen[at], true) || !is_type(data_type, &self.columns[at].1) {
                return None;
            }
            expected = at + 1;
        }
        Some(seen.into_iter().filter(|seen| *seen).count())
    }
}

/// Says whether values of a type that a block names need no cast that could fail, or change them.
fn is_type(sent: &str, wanted: &str) -> bool {
    let plain = |text: &str| DataType::parse_passing(text).map(|data_type| data_type.native_name());
    // A time's zone only says how it is shown.
    let without_zone = || sent == "DateTime" && wanted.starts_with("DateTime(");
    let without_dictionary = || plain(sent).is_ok_and(|sent| plain(wanted).is_ok_and(|wanted| sent == wanted));
    sent == wanted || without_zone() || without_dictionary()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&[u8::try_from(text.len()).expect("a short text")][..], text.as_bytes()].concat()
    }

    /// Makes a block of one row with documents that are sent as text, and numbers.
    fn block(columns: &[(&str, &str)]) -> Vec<u8> {
        let column = |(name, data_type): &(&str, &str)| {
            let value = if data_type.contains("JSON") {
                [&[1, 0, 0, 0, 0, 0, 0, 0][..], &text("{}")].concat()
            } else {
                vec![7]
            };
            [text(name), text(data_type), value].concat()
        };
        let head = vec![u8::try_from(columns.len()).expect("few columns"), 1];
        head.into_iter().chain(columns.iter().flat_map(column)).collect()
    }

    fn plan() -> BlocksPlan {
        let columns = [("j", "JSON"), ("n", "LowCardinality(UInt8)")];
        BlocksPlan::new(columns.map(|(name, data_type)| (name.to_owned(), data_type.to_owned())).to_vec())
    }

    #[test]
    fn blocks_stand_side_by_side() {
        let (whole, other) = (block(&[("j", "JSON"), ("n", "UInt8")]), block(&[("n", "UInt8"), ("j", "JSON")]));
        let no_rows = [vec![1, 0], text("j"), text("JSON")].concat();
        let payload = [&whole[..], &no_rows, &other].concat();
        let joined = plan().join(&payload).expect("blocks of its columns");
        assert_eq!((joined.rows.count(), joined.are_whole), (2, true));
        assert_eq!(joined.rows.text(), [&whole[..], &other].concat());
        let joined = plan().join(&block(&[("j", "JSON")])).expect("one may be left out");
        assert!(!joined.are_whole);
    }

    #[test]
    fn what_is_not_certain_is_not_joined() {
        let whole = block(&[("j", "JSON"), ("n", "UInt8")]);
        let others = [
            vec![],
            vec![0, 0],
            [&whole[..], &[0, 0]].concat(),
            [&[0, 0][..], &whole].concat(),
            [&whole[..], &[1]].concat(),
            block(&[("j", "JSON"), ("j", "JSON")]),
            block(&[("j", "JSON"), ("m", "UInt8")]),
            block(&[("j", "JSON"), ("n", "Int8")]),
            block(&[("j", "JSON(a UInt8)"), ("n", "UInt8")]),
            block(&[("j", "JSON"), ("n", "AggregateFunction(uniq, UInt8)")]),
        ];
        for payload in others {
            assert!(plan().join(&payload).is_none(), "{payload:?}");
        }
        for end in 0..whole.len() {
            assert!(plan().join(&whole[..end]).is_none(), "cut after {end}");
        }
    }
}
