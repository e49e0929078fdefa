//! The destination of rows. Buffers that survive keep it beside the rows, since the bytes mean nothing without it.

/// A table, and the columns that the rows carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destination {
    pub database: String,
    pub table: String,
    pub columns: Vec<String>,
    /// ClickHouse's names of the types that the rows were encoded for.
    pub types: Vec<String>,
}

const VERSION: u8 = 1;

impl Destination {
    pub fn is_same_table(&self, other: &Destination) -> bool {
        (&self.database, &self.table) == (&other.database, &other.table)
    }

    /// Returns the form in which buffers keep a destination: version, then each text behind its length.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        push_text(&mut out, &self.database);
        push_text(&mut out, &self.table);
        push_count(&mut out, self.columns.len());
        for (column, type_name) in self.columns.iter().zip(&self.types) {
            push_text(&mut out, column);
            push_text(&mut out, type_name);
        }
        out
    }

    /// Reads what `to_bytes` has written. Returns `None` for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Destination> {
        let (&version, mut rest) = bytes.split_first()?;
        if version != VERSION {
            return None;
        }
        let mut read =
            Destination { database: take_text(&mut rest)?, table: take_text(&mut rest)?, ..Default::default() };
        for _ in 0..take_count(&mut rest)? {
            read.columns.push(take_text(&mut rest)?);
            read.types.push(take_text(&mut rest)?);
        }
        rest.is_empty().then_some(read)
    }

    /// Returns `INSERT INTO ... FORMAT RowBinaryWithNamesAndTypes`: the types stand in front, so a table
    /// whose columns have changed since refuses the rows instead of reading them as something else.
    pub fn insert_statement(&self) -> String {
        let mut statement = "INSERT INTO ".to_owned();
        if !self.database.is_empty() {
            push_identifier(&mut statement, &self.database);
            statement.push('.');
        }
        push_identifier(&mut statement, &self.table);
        for (index, column) in self.columns.iter().enumerate() {
            statement.push_str(if index == 0 { " (" } else { ", " });
            push_identifier(&mut statement, column);
        }
        statement.push_str(") FORMAT RowBinaryWithNamesAndTypes");
        statement
    }

    /// Returns the bytes in front of a batch's rows: number, names and types of the columns.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_varint(&mut out, self.columns.len());
        for text in self.columns.iter().chain(&self.types) {
            push_varint(&mut out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
        out
    }
}

fn push_identifier(out: &mut String, name: &str) {
    out.push('`');
    for c in name.chars() {
        if matches!(c, '`' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('`');
}

fn push_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    let (count, behind) = rest.split_first_chunk::<4>()?;
    *rest = behind;
    Some(u32::from_le_bytes(*count) as usize)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = take_count(rest)?;
    let text = rest.get(..length)?;
    *rest = &rest[length..];
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Destination {
        Destination {
            database: "d".into(),
            table: "t`".into(),
            columns: vec!["a".into(), "b c".into()],
            types: vec!["Int32".into(), "Array(String)".into()],
        }
    }

    #[test]
    fn it_is_read_back_and_every_truncation_is_refused() {
        let bytes = events().to_bytes();
        assert_eq!(Destination::from_bytes(&bytes), Some(events()));
        for end in 0..bytes.len() {
            assert_eq!(Destination::from_bytes(&bytes[..end]), None, "{end}");
        }
        assert_eq!(Destination::from_bytes(&[bytes.as_slice(), &[0]].concat()), None);
    }

    #[test]
    fn names_are_quoted_and_types_stand_in_front() {
        assert_eq!(
            events().insert_statement(),
            "INSERT INTO `d`.`t\\`` (`a`, `b c`) FORMAT RowBinaryWithNamesAndTypes"
        );
        assert_eq!(events().header(), b"\x02\x01a\x03b c\x05Int32\x0dArray(String)");
    }
}
