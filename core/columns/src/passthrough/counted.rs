//! Values that ClickHouse reads by counting bytes. ClickHouse takes any byte for a separator, the end of the
//! line too: `2020` in one line and `1,5` in the next are one date. So only complete values are taken for
//! fields of their own.

/// The kind of such a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Date,
    /// A date and a time, or seconds since 1970.
    Moment,
    TimeOfDay,
    Uuid,
}

impl Counted {
    /// Says whether the text is a whole value, in the form in which everybody writes it.
    pub(super) fn is_whole(self, text: &[u8]) -> bool {
        match self {
            Counted::Date => is_date(text),
            Counted::Moment => is_moment(text),
            Counted::TimeOfDay => is_time(without_fraction(text)),
            Counted::Uuid => is_uuid(text),
        }
    }
}

fn is_date(text: &[u8]) -> bool {
    is_like(b"0000-00-00", text)
}

fn is_time(text: &[u8]) -> bool {
    is_like(b"00:00:00", text)
}

fn is_moment(text: &[u8]) -> bool {
    let text = without_fraction(without_zone(text));
    match text.get(10) {
        None => is_like(b"0000000000", text),
        Some(b' ' | b'T') => is_date(&text[..10]) && is_time(&text[11..]),
        Some(_) => false,
    }
}

fn is_uuid(text: &[u8]) -> bool {
    let is_digit_or_dash = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.iter().enumerate().all(is_digit_or_dash)
}

/// Compares a text with a form in which a digit stands for any digit.
fn is_like(form: &[u8], text: &[u8]) -> bool {
    form.len() == text.len()
        && form.iter().zip(text).all(|(form, byte)| form == if byte.is_ascii_digit() { &b'0' } else { byte })
}

/// Returns the text before a point that has only digits behind it.
fn without_fraction(text: &[u8]) -> &[u8] {
    match memchr::memrchr(b'.', text) {
        Some(point) if point + 1 < text.len() && text[point + 1..].iter().all(u8::is_ascii_digit) => &text[..point],
        _ => text,
    }
}

fn without_zone(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"Z").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[(Counted, &str)] = &[
        (Counted::Date, "2020-01-05"),
        (Counted::Moment, "2020-01-05 11:22:33"),
        (Counted::Moment, "2020-01-05T11:22:33Z"),
        (Counted::Moment, "2020-01-05 11:22:33.123456"),
        (Counted::Moment, "1600000000"),
        (Counted::Moment, "1600000000.5"),
        (Counted::TimeOfDay, "11:22:33"),
        (Counted::TimeOfDay, "11:22:33.5"),
        (Counted::Uuid, "61f0c404-5cb3-11e7-907B-a6006ad3dba0"),
    ];

    #[test]
    fn a_value_is_whole_or_cut_off() {
        for (kind, text) in WHOLE {
            assert!(kind.is_whole(text.as_bytes()), "{text}");
            for length in 0..text.len() {
                let fraction_at = text.find('.').unwrap_or(text.len());
                let is_shorter_fraction = length > fraction_at + 1 || length == fraction_at;
                let is_without_zone = text.ends_with('Z') && length + 1 == text.len();
                let expected = is_shorter_fraction || is_without_zone;
                assert_eq!(kind.is_whole(&text.as_bytes()[..length]), expected, "{text} cut at {length}");
            }
        }
    }

    #[test]
    fn other_forms_are_not_for_sure() {
        let cases = [
            (
                Counted::Date,
                &["2020-1-5", "20200105", "2020/01/05", "2020-01-05 ", " 2020-01-05", "2020-01-0\n", "18000"][..],
            ),
            (
                Counted::Moment,
                &["2020-01-05", "160000000", "16000000000", "2020-01-05 11:22:33.", "2020-01-05\n11:22:33"],
            ),
            (Counted::Moment, &["22 Nov 2026", "2020-01-05 11:22:33 PM", "2020-01-05 1:22:33", "Z", "."]),
            (Counted::TimeOfDay, &["1:22:33", "-11:22:33", "11:22"]),
            (Counted::Uuid, &["61f0c4045cb311e7907ba6006ad3dba0", "61f0c404-5cb3-11e7-907b-a6006ad3dbag"]),
        ];
        for (kind, texts) in cases {
            for text in texts {
                assert!(!kind.is_whole(text.as_bytes()), "{text}");
            }
        }
    }
}
