//! Percent-encoding, as URLs and HTML forms use it.

use std::borrow::Cow;

/// Appends `&name=value` (or `?name=value` for the first), both encoded.
pub fn push_param(target: &mut String, name: &str, value: &str) {
    target.push(if target.contains('?') { '&' } else { '?' });
    push_percent_encoded(target, name);
    target.push('=');
    push_percent_encoded(target, value);
}

pub fn push_percent_encoded(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            _ => {
                out.push('%');
                out.push(HEX[usize::from(byte >> 4)] as char);
                out.push(HEX[usize::from(byte & 15)] as char);
            }
        }
    }
}

/// Decodes `%XX`, and `+` for a space as in forms. An escape that is not valid stays as it is.
pub fn percent_decode(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|&b| b == b'%' || b == b'+') {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = match bytes[at] {
            b'%' => bytes.get(at + 1..at + 3).and_then(hex_pair),
            _ => None,
        };
        match (bytes[at], escape) {
            (_, Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, None) => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    Some(digit(digits[0])? << 4 | digit(digits[1])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let text: String = (1u32..0x250).filter_map(char::from_u32).collect();
        let mut encoded = String::new();
        push_percent_encoded(&mut encoded, &text);
        assert!(encoded.is_ascii());
        assert_eq!(percent_decode(&encoded), text.as_bytes());
    }

    #[test]
    fn broken_escapes_stay() {
        assert_eq!(&*percent_decode("a%4"), b"a%4");
        assert_eq!(&*percent_decode("%zz+%41"), b"%zz A");
        assert_eq!(&*percent_decode("%"), b"%");
    }
}
