use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the content type of a page's file, by the file's name.
pub fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        Some((_, "json")) => "application/json",
        _ => "application/octet-stream",
    }
}

const FOR_BROWSERS: [(&str, &str); 4] = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-cache"),
];

/// Builder of an answer in one buffer, so that a small answer is one write.
pub struct ResponseBuilder<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> ResponseBuilder<'a> {
    pub fn new(out: &'a mut Vec<u8>, status: u16) -> Self {
        out.clear();
        out.extend_from_slice(b"HTTP/1.1 ");
        push_number(out, u64::from(status));
        out.push(b' ');
        out.extend_from_slice(reason_phrase(status).as_bytes());
        out.extend_from_slice(b"\r\n");
        ResponseBuilder { out }
    }

    /// Continues an answer whose head has been begun, and sent so far.
    pub fn resumed(out: &'a mut Vec<u8>) -> Self {
        out.clear();
        ResponseBuilder { out }
    }

    /// Adds a field. Line breaks in a value would end it early and let a client write fields of its own: they
    /// become spaces.
    pub fn field(self, name: &str, value: &str) -> Self {
        self.field_bytes(name, value.as_bytes())
    }

    pub fn field_bytes(self, name: &str, value: &[u8]) -> Self {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        let start = self.out.len();
        self.out.extend_from_slice(value);
        // Looking first is cheaper than writing: no value that we make has such bytes.
        if self.out[start..].iter().fold(false, |found, &byte| found | ends_line(byte)) {
            self.out[start..].iter_mut().filter(|byte| ends_line(**byte)).for_each(|byte| *byte = b' ');
        }
        self.out.extend_from_slice(b"\r\n");
        self
    }

    pub fn number(self, name: &str, value: u64) -> Self {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        push_number(self.out, value);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds a field of two numbers, each behind some fixed text.
    pub fn numbers(self, name: &str, before: &str, first: u64, between: &str, second: u64) -> Self {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(before.as_bytes());
        push_number(self.out, first);
        self.out.extend_from_slice(between.as_bytes());
        push_number(self.out, second);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds the `Date` field. Its text is made once a second.
    pub fn date(self) -> Self {
        thread_local! {
            static LATEST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
        }
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        LATEST.with_borrow_mut(|(made_at, text)| {
            if *made_at != second {
                *text = http_date(now);
                *made_at = second;
            }
            self.field("Date", text)
        })
    }

    /// Adds the fields for a page and for the files that it loads: a page loads and requests nothing from
    /// elsewhere, no frame shows it, and it is never taken for another content type.
    pub fn for_browsers(self) -> Self {
        FOR_BROWSERS.iter().fold(self, |response, (name, value)| response.field(name, value))
    }

    /// Adds fields that are prepared as they are sent, each ended by CR LF.
    pub fn prepared(self, fields: &[u8]) -> Self {
        self.out.extend_from_slice(fields);
        self
    }

    /// Ends the head of an answer whose length is known, and adds the body.
    pub fn body(self, body: &[u8]) {
        let this = self.number("Content-Length", body.len() as u64);
        this.out.extend_from_slice(b"\r\n");
        this.out.extend_from_slice(body);
    }

    /// Ends the head and adds the body in ClickHouse's own framing: chunked, whatever its length.
    pub fn chunked_body(self, body: &[u8]) {
        self.out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        if !body.is_empty() {
            self.out.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
            self.out.extend_from_slice(body);
            self.out.extend_from_slice(b"\r\n");
        }
        self.out.extend_from_slice(b"0\r\n\r\n");
    }

    /// Ends the head of an answer without a body.
    pub fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

fn ends_line(byte: u8) -> bool {
    (byte == b'\r') | (byte == b'\n') | (byte == 0)
}

fn push_number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}

/// Formats a time for the `Date` field (RFC 9110, section 5.6.7), such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let date = civil_from_days(days);
    format!(
        "{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        date.day,
        MONTHS[(date.month - 1) as usize],
        date.year,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

struct CivilDate {
    year: u64,
    month: u64,
    day: u64,
}

/// Returns the date by Howard Hinnant's `civil_from_days`, for days since 1970 only.
fn civil_from_days(days: u64) -> CivilDate {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    CivilDate { year, month, day: day_of_year - (153 * shifted_month + 2) / 5 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_written_as_the_standard_says() {
        let at = |seconds| http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(at(4_102_444_799), "Thu, 31 Dec 2099 23:59:59 GMT");
    }

    #[test]
    fn a_value_can_not_add_fields() {
        let mut out = Vec::new();
        ResponseBuilder::new(&mut out, 200).field("X-Query-Id", "a\r\nSet-Cookie: b").body(b"");
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nX-Query-Id: a  Set-Cookie: b\r\nContent-Length: 0\r\n\r\n");
    }

    #[test]
    fn chunked_bodies_end() {
        let mut out = Vec::new();
        ResponseBuilder::new(&mut out, 200).number("N", 0).chunked_body(b"Ok.\n");
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nN: 0\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nOk.\n\r\n0\r\n\r\n");
        ResponseBuilder::new(&mut out, 500).chunked_body(b"");
        assert!(out.ends_with(b"chunked\r\n\r\n0\r\n\r\n"));
    }
}
