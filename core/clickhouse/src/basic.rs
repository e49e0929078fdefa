//! Credentials as HTTP's `Authorization: Basic` carries them.

use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::Engine;

use crate::call::Credentials;

/// The alphabet of Base64, with or without padding: some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
);

impl Credentials {
    /// Reads the value of an `Authorization` field. Returns `None` for another scheme and for an incomplete value.
    pub fn from_basic(authorization: &[u8]) -> Option<Credentials> {
        let text = std::str::from_utf8(authorization).ok()?;
        let (scheme, encoded) = text.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = String::from_utf8(BASE64.decode(encoded.trim().trim_end_matches('=')).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        Some(Credentials { user: user.to_owned(), password: password.to_owned() })
    }

    /// Writes the value that [`from_basic`](Self::from_basic) reads. A user name with a colon can't be
    /// written this way: the name would end at the colon.
    pub(crate) fn to_basic(&self) -> String {
        format!("Basic {}", BASE64.encode(format!("{}:{}", self.user, self.password)))
    }
}

/// Compares two secrets. The time does not depend on where they differ.
pub fn same_secret(given: &str, wanted: &str) -> bool {
    let differing = given.bytes().zip(wanted.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == wanted.len() && differing == 0
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
