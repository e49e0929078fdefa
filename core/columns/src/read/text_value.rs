//! Single values written as text, within formats of other systems: a time or a number in a field of strings.

use super::cursor::Cursor;
use super::outcome::NotParsedReason;
use super::scalar::{push_number, push_text};
use super::time::TimeSpelling;
use crate::reader::Reader;
use crate::settings::ReadSettings;
use crate::types::DataType;

/// Reads the texts of one type of fixed width, in their plainest spelling only.
#[derive(Clone)]
pub struct TextValues {
    reader: std::sync::Arc<Reader>,
    settings: ReadSettings,
}

impl TextValues {
    /// Makes a reader; `None` for types that are not read from texts this way.
    pub fn new(data_type: &DataType, settings: &ReadSettings) -> Option<Self> {
        let mut settings = settings.clone();
        settings.time_spelling = TimeSpelling::Basic;
        let reader = Reader::new(data_type, &mut settings.zones());
        let is_read = matches!(
            reader,
            Reader::Integer { .. }
                | Reader::WideInteger { .. }
                | Reader::Float32
                | Reader::Float64
                | Reader::Decimal { .. }
                | Reader::Date
                | Reader::Date32
                | Reader::DateTime(_)
                | Reader::DateTime64 { .. }
                | Reader::Uuid
                | Reader::Ipv4
                | Reader::Enum(_)
        );
        is_read.then(|| TextValues { reader: std::sync::Arc::new(reader), settings })
    }

    /// Appends the value that a text stands for.
    ///
    /// # Errors
    /// Fails where the text is not the plainest spelling of a value of the type.
    pub fn push(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        match &*self.reader {
            Reader::Enum(names) => names.push_named(text, out).ok_or(NotParsedReason::Value),
            Reader::Integer { .. }
            | Reader::WideInteger { .. }
            | Reader::Float32
            | Reader::Float64
            | Reader::Decimal { .. } => {
                let mut cursor = Cursor::new(text);
                push_number(&self.reader, &mut cursor, out)?;
                match cursor.at_end() {
                    true => Ok(()),
                    false => Err(NotParsedReason::Value),
                }
            }
            reader => push_text(reader, text, &self.settings, out),
        }
    }
}
