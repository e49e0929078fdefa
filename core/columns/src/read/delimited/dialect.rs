use crate::read::cursor::Cursor;
use crate::read::json_text::Text;
use crate::read::outcome::NotParsedReason;

/// The way in which fields are written. The cursor always stands at the start of a field, inside of it, or at
/// its end.
pub(super) trait Dialect {
    /// Says whether an empty field asks for the column's default.
    fn empty_is_default(&self) -> bool;

    /// Says whether a first row of column names is taken for a header.
    fn detects_header(&self) -> bool;

    /// Returns the number of lines before the table, header included.
    fn skipped_lines(&self) -> u64;

    /// Says whether line breaks at the end are no rows.
    fn skips_empty_end(&self) -> bool;

    /// Says whether rows may have less fields than columns, and more.
    fn has_variable_columns(&self) -> bool;

    /// Says whether an Array or a Map is read where it stands, rather than out of the field's text.
    fn nests_in_place(&self) -> bool;

    /// Says whether a Tuple is spread over as many fields as it has elements.
    fn spreads_tuples(&self) -> bool {
        false
    }

    /// Says whether integers may have a `+` and leading zeros.
    fn integers_are_lenient(&self) -> bool {
        false
    }

    /// Says whether an integer without digits is 0.
    fn empty_integer_is_zero(&self) -> bool {
        false
    }

    /// Skips blanks that count for nothing before a value and behind it.
    #[inline]
    fn skip_blanks(&self, _cursor: &mut Cursor<'_>) {}

    /// Takes the quote around a value, if the field may have one and has.
    #[inline]
    fn eat_quote(&self, _cursor: &mut Cursor<'_>) -> bool {
        false
    }

    /// Says whether the field ends at the cursor.
    fn at_field_end(&self, cursor: &Cursor<'_>) -> bool;

    /// Goes from the end of a value to the end of the field, and fails if anything but blanks lies between.
    #[inline]
    fn finish_field(&self, cursor: &mut Cursor<'_>) -> Result<(), NotParsedReason> {
        self.skip_blanks(cursor);
        if self.at_field_end(cursor) {
            Ok(())
        } else {
            Err(NotParsedReason::Value)
        }
    }

    /// Returns the text that stands for NULL.
    fn null(&self) -> &[u8];

    /// Takes NULL, if the field is just that.
    #[inline]
    fn eat_null(&self, cursor: &mut Cursor<'_>) -> bool {
        if cursor.peek() != self.null().first().copied() {
            return false;
        }
        let start = cursor.at;
        let found = cursor.eat_exactly(self.null()) && self.at_field_end(cursor);
        if !found {
            cursor.at = start;
        }
        found
    }

    /// Reads the field's whole text; the cursor is left at the end of the field.
    fn text<'a>(&self, cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<Text<'a>, NotParsedReason>;

    /// Says whether another field follows in this row.
    fn at_delimiter(&self, cursor: &Cursor<'_>) -> bool;

    /// Says whether no other field follows in this row.
    fn at_row_end(&self, cursor: &Cursor<'_>) -> bool {
        self.at_field_end(cursor) && !self.at_delimiter(cursor)
    }

    /// Goes from the end of a row's last field to the next row.
    fn end_row(&self, cursor: &mut Cursor<'_>) -> Result<(), NotParsedReason>;
}
