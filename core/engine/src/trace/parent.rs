use std::sync::Arc;

/// Longest `tracestate` that is kept, in bytes: W3C's limit is 512 characters, and a longer one may be left
/// out.
const MAX_STATE_BYTES: usize = 512;

/// The span that a request belongs to, as its client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub trace_id: u128,
    pub span_id: u64,
    pub is_sampled: bool,
    /// Data that others keep in `tracestate`, passed on as it came.
    pub state: Arc<str>,
}

impl Parent {
    /// Creates a parent. Returns `None` if one of the ids is 0, which is nobody's.
    pub fn new(trace_id: u128, span_id: u64, flags: u8, state: &[u8]) -> Option<Parent> {
        let state = std::str::from_utf8(state).ok().filter(|state| state.len() <= MAX_STATE_BYTES).unwrap_or_default();
        let is_valid = trace_id != 0 && span_id != 0;
        is_valid.then(|| Parent { trace_id, span_id, is_sampled: flags & 1 == 1, state: state.into() })
    }

    /// Reads the fields `traceparent` and `tracestate`, as in <https://www.w3.org/TR/trace-context/>.
    pub fn of_header(traceparent: &[u8], tracestate: Option<&[u8]>) -> Option<Parent> {
        let (version, rest) = traceparent.split_at_checked(2)?;
        let version = hex(version)?;
        let fields: [&[u8]; 4] = [rest.get(..1)?, rest.get(1..33)?, rest.get(34..50)?, rest.get(51..53)?];
        let dashes = [fields[0], rest.get(33..34)?, rest.get(50..51)?];
        let (behind, is_long) = (rest.get(53), rest.len() > 53);
        // Later versions may add fields; the first one has none.
        let ends_well = if version == 0 { !is_long } else { behind.is_none_or(|next| *next == b'-') };
        if version == 0xff || !ends_well || dashes.iter().any(|dash| *dash != b"-") {
            return None;
        }
        let (trace_id, span_id, flags) = (hex(fields[1])?, hex(fields[2])?, hex(fields[3])?);
        Parent::new(trace_id, span_id as u64, flags as u8, tracestate.unwrap_or_default())
    }
}

/// Reads hexadecimal digits, in lower case only.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_header_is_read_whole_or_not_at_all() {
        let parent = Parent::of_header(GOOD.as_bytes(), None).expect("a parent");
        assert_eq!((parent.trace_id, parent.span_id), (0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331));
        assert!(parent.is_sampled);
        for end in 0..GOOD.len() {
            assert_eq!(Parent::of_header(&GOOD.as_bytes()[..end], None), None, "{end}");
        }
        for bad in [
            GOOD.replacen("00", "ff", 1),
            GOOD.to_uppercase(),
            format!("{GOOD}-00"),
            GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01".to_owned(),
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01".to_owned(),
        ] {
            assert_eq!(Parent::of_header(bad.as_bytes(), None), None, "{bad}");
        }
        assert!(Parent::of_header(format!("01{}-more", &GOOD[2..]).as_bytes(), None).is_some());
        assert!(Parent::of_header(format!("01{}more", &GOOD[2..]).as_bytes(), None).is_none());
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let mut bytes = GOOD.as_bytes().to_vec();
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
            let _ = Parent::of_header(&bytes, Some(&bytes));
        }
    }

    #[test]
    fn a_state_that_is_too_long_or_no_text_is_left_out() {
        let state = |bytes: &[u8]| Parent::of_header(GOOD.as_bytes(), Some(bytes)).expect("a parent").state;
        assert_eq!(&*state(b"a=b,c=d"), "a=b,c=d");
        assert_eq!(&*state(&[b'a'; 513]), "");
        assert_eq!(&*state(b"\xff"), "");
    }
}
