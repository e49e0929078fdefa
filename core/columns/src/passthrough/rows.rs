use std::ops::Range;

/// Rows as the text that their senders wrote, one piece per insert, joined into one text.
///
/// Only the bytes of a piece and the number of its rows are known: a piece can be taken out whole, not cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassthroughRows {
    text: Vec<u8>,
    /// The end of each piece, in bytes and in rows, both ascending.
    ends: Vec<End>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct End {
    byte: usize,
    row: usize,
}

impl PassthroughRows {
    /// Makes one piece: whole rows, ended so that others may follow.
    pub fn piece(text: Vec<u8>, rows: usize) -> Self {
        let end = End { byte: text.len(), row: rows };
        PassthroughRows { text, ends: if rows == 0 { Vec::new() } else { vec![end] } }
    }

    pub fn count(&self) -> usize {
        self.end().row
    }

    /// Returns all rows, one behind the other.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn end(&self) -> End {
        self.ends.last().copied().unwrap_or_default()
    }

    pub(crate) fn append(&mut self, other: &PassthroughRows) {
        self.append_pieces(other, 0..other.ends.len());
    }

    /// Appends the pieces that make up a range of rows.
    ///
    /// # Panics
    /// If the range begins or ends within a piece.
    pub(crate) fn append_range(&mut self, other: &PassthroughRows, rows: Range<usize>) {
        let pieces = other.pieces_before(rows.start)..other.pieces_before(rows.end);
        self.append_pieces(other, pieces);
    }

    fn append_pieces(&mut self, other: &PassthroughRows, pieces: Range<usize>) {
        let Some(last) = other.ends[pieces.clone()].last() else { return };
        let before = if pieces.start == 0 { End::default() } else { other.ends[pieces.start - 1] };
        let here = self.end();
        self.text.extend_from_slice(&other.text[before.byte..last.byte]);
        self.ends.extend(
            other.ends[pieces]
                .iter()
                .map(|end| End { byte: end.byte - before.byte + here.byte, row: end.row - before.row + here.row }),
        );
    }

    /// Returns the number of pieces that make up the first `row` rows.
    fn pieces_before(&self, row: usize) -> usize {
        if row == 0 {
            return 0;
        }
        let found = self.ends.binary_search_by_key(&row, |end| end.row);
        1 + found.expect("inserts are taken whole, so a range of rows ends where a piece does")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> PassthroughRows {
        let mut rows = PassthroughRows::default();
        for (text, count) in [("a\n", 1), ("b\nc\n", 2), ("d\n", 1)] {
            rows.append(&PassthroughRows::piece(text.as_bytes().to_vec(), count));
        }
        rows
    }

    #[test]
    fn pieces_are_joined_and_taken_out_whole() {
        let rows = three();
        assert_eq!((rows.text(), rows.count()), (&b"a\nb\nc\nd\n"[..], 4));
        for (range, text) in
            [(0..1, "a\n"), (1..3, "b\nc\n"), (1..4, "b\nc\nd\n"), (3..4, "d\n"), (0..4, "a\nb\nc\nd\n")]
        {
            let mut part = PassthroughRows::piece(b"z\n".to_vec(), 1);
            part.append_range(&rows, range.clone());
            assert_eq!(part.text(), format!("z\n{text}").as_bytes(), "{range:?}");
            assert_eq!(part.count(), 1 + range.len());
            let mut again = PassthroughRows::default();
            again.append_range(&part, 1..part.count());
            assert_eq!(again.text(), text.as_bytes());
        }
        let mut none = three();
        none.append_range(&rows, 1..1);
        assert_eq!(none, rows);
    }

    #[test]
    #[should_panic(expected = "inserts are taken whole")]
    fn a_piece_is_never_cut() {
        PassthroughRows::default().append_range(&three(), 0..2);
    }
}
