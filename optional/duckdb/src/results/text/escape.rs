/// Writes backslashes before bytes that would end a field, a row or a quoted string, and letters for control
/// characters that have one.
pub(crate) fn escaped(out: &mut Vec<u8>, text: &[u8]) {
    copy_replacing(out, text, |byte| {
        Some(match byte {
            b'\\' => b"\\\\",
            b'\'' => b"\\'",
            b'\n' => b"\\n",
            b'\t' => b"\\t",
            b'\r' => b"\\r",
            0 => b"\\0",
            8 => b"\\b",
            12 => b"\\f",
            _ => return None,
        })
    });
}

pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\'');
    escaped(out, text);
    out.push(b'\'');
}

/// Writes a field of CSV: quotes around it, and each quote inside doubled.
pub(crate) fn csv_string(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    let start = out.len();
    write(out);
    if out[start..].contains(&b'"') {
        let field = out.split_off(start);
        copy_replacing(out, &field, |byte| (byte == b'"').then_some(&b"\"\""[..]));
    }
    out.push(b'"');
}

pub(crate) fn json_string(out: &mut Vec<u8>, text: &[u8], escape_slashes: bool) {
    out.push(b'"');
    let mut copied = 0;
    for (at, &byte) in text.iter().enumerate() {
        let replaced: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'/' if escape_slashes => b"\\/",
            b'\n' => b"\\n",
            b'\t' => b"\\t",
            b'\r' => b"\\r",
            8 => b"\\b",
            12 => b"\\f",
            0..=0x1F => {
                out.extend_from_slice(&text[copied..at]);
                super::append(out, format_args!("\\u{byte:04X}"));
                copied = at + 1;
                continue;
            }
            // The line separators that JavaScript does not allow in strings.
            0xA8 | 0xA9 if text[..at].ends_with(b"\xE2\x80") => {
                out.extend_from_slice(&text[copied..at - 2]);
                super::append(out, format_args!("\\u20{:02x}", byte - 0x80));
                copied = at + 1;
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&text[copied..at]);
        out.extend_from_slice(replaced);
        copied = at + 1;
    }
    out.extend_from_slice(&text[copied..]);
    out.push(b'"');
}

fn copy_replacing(out: &mut Vec<u8>, text: &[u8], replacement: impl Fn(u8) -> Option<&'static [u8]>) {
    let mut copied = 0;
    for (at, &byte) in text.iter().enumerate() {
        if let Some(replaced) = replacement(byte) {
            out.extend_from_slice(&text[copied..at]);
            out.extend_from_slice(replaced);
            copied = at + 1;
        }
    }
    out.extend_from_slice(&text[copied..]);
}
