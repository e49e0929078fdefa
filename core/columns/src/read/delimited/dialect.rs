use crate::read::cursor::Cursor;
use crate::read::json_text::Text;
use crate::read::outcome::NotParsedReason;

/// How fields are written. The cursor always stands at the start of a field, inside of it, or where it ends.
pub(super) trait Dialect {
    /// Whether a field of nothing at all asks for the column's default.
    fn empty_is_default(&self) -> bool;

    /// Whether a first row of column names is taken for a header.
    fn detects_header(&self) -> bool;

    /// Lines before the table, header included.
    fn skipped_lines(&self) -> u64;

    /// Whether line breaks at the end are no rows.
    fn skips_empty_end(&self) -> bool;

    /// Whether rows may have less fields than columns, and more.
    fn has_variable_columns(&self) -> bool;

    /// Whether an Array or a Map is read where it stands, rather than out of the field's text.
    fn nests_in_place(&self) -> bool;

    /// Whether a Tuple is spread over as many fields as it has elements.
    fn spreads_tuples(&self) -> bool {
        false
    }

    /// Whether integers may have a `+` and leading zeros.
    fn integers_are_lenient(&self) -> bool {
        false
    }

    /// Whether an integer without digits is 0.
    fn empty_integer_is_zero(&self) -> bool {
        false
    }

    /// Goes over what has no weight before a value and behind it.
    #[inline]
    fn skip_blanks(&self, _cursor: &mut Cursor<'_>) {}

    /// The quote around a value, if the field may have one and has.
    #[inline]
    fn eat_quote(&self, _cursor: &mut Cursor<'_>) -> bool {
        false
    }

    /// Whether the field ends right here.
    fn at_field_end(&self, cursor: &Cursor<'_>) -> bool;

    /// Behind a value: goes to where the field ends, if nothing of weight lies between.
    #[inline]
    fn finish_field(&self, cursor: &mut Cursor<'_>) -> Result<(), NotParsedReason> {
        self.skip_blanks(cursor);
        if self.at_field_end(cursor) {
            Ok(())
        } else {
            Err(NotParsedReason::Value)
        }
    }

    /// What stands for NULL.
    fn null(&self) -> &[u8];

    /// Eats NULL, if the field is just that.
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

    /// The field's whole text; the cursor is left where the field ends.
    fn text<'a>(&self, cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<Text<'a>, NotParsedReason>;

    /// Whether another field follows in this row.
    fn at_delimiter(&self, cursor: &Cursor<'_>) -> bool;

    /// Whether no other field follows in this row.
    fn at_row_end(&self, cursor: &Cursor<'_>) -> bool {
        self.at_field_end(cursor) && !self.at_delimiter(cursor)
    }

    /// From the end of a row's last field to the next row.
    fn end_row(&self, cursor: &mut Cursor<'_>) -> Result<(), NotParsedReason>;
}
