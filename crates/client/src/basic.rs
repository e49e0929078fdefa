//! Credentials as HTTP's `Authorization: Basic` carries them.

use crate::call::Credentials;

impl Credentials {
    /// Reads the value of an `Authorization` field; other schemes, and what isn't whole, give `None`.
    pub fn from_basic(authorization: &[u8]) -> Option<Credentials> {
        let text = std::str::from_utf8(authorization).ok()?;
        let (scheme, encoded) = text.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = String::from_utf8(decode_base64(encoded.trim())?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        Some(Credentials { user: user.to_owned(), password: password.to_owned() })
    }
}

/// Takes the same time wherever the two differ.
pub fn same_secret(given: &str, wanted: &str) -> bool {
    let differing = given.bytes().zip(wanted.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == wanted.len() && differing == 0
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: &str) -> Option<(String, String)> {
        Credentials::from_basic(field.as_bytes()).map(|read| (read.user, read.password))
    }

    #[test]
    fn user_and_password_are_read() {
        assert_eq!(read("Basic am9lOmE6Yg=="), Some(("joe".into(), "a:b".into())));
        assert_eq!(read("basic  am9lOg"), Some(("joe".into(), String::new())));
    }

    #[test]
    fn anything_else_is_nobody() {
        for field in ["", "Basic", "Basic ", "Bearer am9lOmE6Yg==", "Basic am9l", "Basic !!!!", "Basic /////w=="] {
            assert_eq!(read(field), None, "{field}");
        }
    }
}
