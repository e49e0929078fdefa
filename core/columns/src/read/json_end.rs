use super::cursor::Cursor;
use super::json_text::skip_value;
use super::outcome::NotParsedReason;

/// Returns the end of the JSON value that begins at `start`, if it is strict JSON: nobody can take such a
/// value for a longer or a shorter one.
pub(crate) fn end_of_json(payload: &[u8], start: usize, scratch: &mut Vec<u8>) -> Result<usize, NotParsedReason> {
    let mut cursor = Cursor { bytes: payload, at: start };
    skip_value(&mut cursor, scratch)?;
    Ok(cursor.at)
}
