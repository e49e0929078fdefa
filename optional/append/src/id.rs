//! The id by which an append is known, and which its client may choose.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A UUID. A client that knows the id, and has the user who opened the append, may write to the append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppendId(u128);

/// The error of a text that was given as an id and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

impl AppendId {
    /// Makes a random id.
    pub fn random() -> AppendId {
        let mut bytes = [0; 16];
        // Without randomness nothing of this program works: queries and batches have random ids as well.
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        AppendId(u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62)
    }

    pub fn from_u128(value: u128) -> AppendId {
        AppendId(value)
    }

    pub fn as_u128(self) -> u128 {
        self.0
    }

    /// Returns the id's 32 digits, for names of tables and folders.
    pub fn digits(self) -> String {
        format!("{:032x}", self.0)
    }
}

impl fmt::Display for AppendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits();
        let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        f.write_str(&groups.join("-"))
    }
}

impl FromStr for AppendId {
    type Err = NotAnId;

    /// Takes the usual form with hyphens, and the 32 digits alone.
    fn from_str(text: &str) -> Result<AppendId, NotAnId> {
        let hyphens_at = [8, 13, 18, 23];
        let is_placed = |(at, byte): (usize, u8)| (byte == b'-') == hyphens_at.contains(&at);
        let digits = match text.len() {
            32 => text.to_owned(),
            36 if text.bytes().enumerate().all(is_placed) => text.replace('-', ""),
            _ => return Err(NotAnId),
        };
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAnId);
        }
        u128::from_str_radix(&digits, 16).map(AppendId).map_err(|_| NotAnId)
    }
}

impl Serialize for AppendId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_both_forms() {
        let id = AppendId::random();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.digits().parse(), Ok(id));
        assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        assert_eq!(id.to_string().as_bytes()[14], b'4', "a random UUID: {id}");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let good = AppendId::random().to_string();
        for bad in
            ["", "x", "+fffffffffffffffffffffffffffffff", &good[1..], &good.replace('-', "_"), "é".repeat(18).as_str()]
        {
            assert_eq!(bad.parse::<AppendId>(), Err(NotAnId), "{bad}");
        }
    }
}
