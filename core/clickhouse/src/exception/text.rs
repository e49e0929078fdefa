use std::fmt;

use super::ErrorCode;

/// An error as ClickHouse words it: `Code: 27. DB::Exception: text (NAME) (version 26.7.2.1)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub code: ErrorCode,
    /// The whole line as it came, without the line break. Clients see it and match on it.
    pub line: String,
    /// The server's summary came with the error and says that no row had been written yet.
    pub before_writing: bool,
}

impl Exception {
    /// Makes an error of our own in ClickHouse's form. `version` is the suffix that the backend puts after
    /// its errors.
    pub fn new(code: ErrorCode, text: &str, version: &str) -> Exception {
        let name = code.name().unwrap_or("UNKNOWN_EXCEPTION");
        let stop = if text.ends_with('.') { "" } else { "." };
        let space = if version.is_empty() { "" } else { " " };
        let line = format!("Code: {code}. DB::Exception: {text}{stop} ({name}){space}{version}");
        Exception { code, line, before_writing: false }
    }

    /// Reads the body of an error answer. Returns `None` where the body is no exception.
    pub fn parse(body: &[u8]) -> Option<Exception> {
        let text = std::str::from_utf8(body).ok()?.trim_end_matches(['\n', '\r']);
        let digits = text.strip_prefix("Code: ")?.split('.').next()?;
        Some(Exception { code: digits.parse().ok()?, line: text.to_owned(), before_writing: false })
    }

    /// Reads an error that may come with a code of its own (the `X-ClickHouse-Exception-Code` field). Returns
    /// `None` where something between us and ClickHouse has answered: such an answer does not tell what
    /// ClickHouse did.
    pub fn from_answer(code_field: Option<&str>, body: &[u8]) -> Option<Exception> {
        let text = || String::from_utf8_lossy(&body[..body.len().min(4096)]).trim_end().to_owned();
        let by_field = || Some(Exception { code: code_field?.parse().ok()?, line: text(), before_writing: false });
        Exception::parse(body).or_else(by_field)
    }

    /// Notes the `X-ClickHouse-Summary` that came with the error. ClickHouse counts rows between reading and
    /// writing them.
    pub fn with_summary(mut self, summary: Option<&str>) -> Exception {
        let counts_none = |summary: &str| {
            ["\"read_rows\":\"0\"", "\"written_rows\":\"0\""].iter().all(|count| summary.contains(count))
        };
        self.before_writing = summary.is_some_and(counts_none);
        self
    }

    /// Says whether the user was refused: an unknown user, or a wrong password.
    pub fn is_about_identity(&self) -> bool {
        self.code.is_about_identity()
    }

    /// Says whether the same request may succeed a little later, without anyone changing anything.
    pub fn is_passing(&self) -> bool {
        self.code.is_passing() && !self.is_about_partitions()
    }

    /// Says whether a block had rows of more partitions than one INSERT may write
    /// (`max_partitions_per_insert_block`). This error has the code of "too many parts", which passes with
    /// time; this one doesn't.
    fn is_about_partitions(&self) -> bool {
        self.code == ErrorCode::TOO_MANY_PARTS && self.line.contains("partitions")
    }

    /// Says whether values of some row caused the error: reading, converting or computing them, or a constraint.
    pub fn comes_of_values(&self) -> bool {
        self.code.comes_of_values()
    }

    /// Says whether rows were refused after they had been read: by the table's checks, by its views, or for
    /// lack of room.
    pub fn is_of_writing(&self) -> bool {
        // Of the Sign, or of what marks rows as deleted, in a table that collapses rows.
        let is_of_collapsing = self.line.contains(" (must be 1 or ");
        let by_code =
            matches!(self.code, ErrorCode::VIOLATED_CONSTRAINT | ErrorCode::TOO_MANY_PARTS) || self.is_passing();
        by_code || self.is_of_a_view() || is_of_collapsing
    }

    /// Says whether a materialized view raised the error, or a table that a view writes to. ClickHouse says
    /// so at the end of the text, where only names follow. The same words in a value of a row have a closing
    /// quote after them.
    pub fn is_of_a_view(&self) -> bool {
        let names = self.line.rsplit_once("while pushing to view").map(|(_, names)| names);
        names.is_some_and(|names| !names.contains('\'') || names.contains('`'))
    }

    /// Says whether another server raised the error, to which this server had passed rows on.
    pub fn is_of_another_server(&self) -> bool {
        self.line.contains("Received from ")
    }

    /// Says whether the server itself does not know what became of the request.
    pub fn leaves_outcome_open(&self) -> bool {
        self.code.leaves_outcome_open()
    }

    /// Returns the row, counted from 1, that the error names, if it names one. The text may contain anything
    /// that a client sent, so this is only a hint.
    pub fn row(&self) -> Option<u64> {
        let number_at = match self.code {
            // Constraint `c` for table d.t is violated at row 8. Expression: (a < 100). Column values: a = 500.
            ErrorCode::VIOLATED_CONSTRAINT => self.line.find(" is violated at row ")? + " is violated at row ".len(),
            _ => self.line.rfind("(at row ")? + "(at row ".len(),
        };
        let digits = self.line[number_at..].split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|&row| row > 0)
    }

    /// Returns the suffix that ClickHouse appends to each error: `(version 26.7.2.1)`, or with a second part
    /// for official builds.
    pub fn version_suffix(&self) -> &str {
        self.line.rfind("(version ").map_or("", |at| &self.line[at..])
    }

    pub fn http_status(&self) -> u16 {
        self.code.http_status()
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Exception {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_alike() {
        let line = "Code: 60. DB::Exception: Table default.t does not exist. (UNKNOWN_TABLE) (version 26.7.2.1)";
        let read = Exception::parse(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!((read.code, read.line.as_str(), read.http_status()), (ErrorCode::UNKNOWN_TABLE, line, 404));
        assert_eq!(read.version_suffix(), "(version 26.7.2.1)");
        assert_eq!(
            Exception::new(ErrorCode::UNKNOWN_TABLE, "Table default.t does not exist.", "(version 26.7.2.1)"),
            read
        );
    }

    #[test]
    fn other_bodies_are_no_exceptions() {
        for body in ["", "Ok.\n", "Code: x", "Code: ", "\u{0}"] {
            assert_eq!(Exception::parse(body.as_bytes()), None, "{body:?}");
        }
        assert_eq!(Exception::from_answer(Some("241"), b"too much\n").unwrap().code, ErrorCode::MEMORY_LIMIT_EXCEEDED);
        assert_eq!(Exception::from_answer(None, b"<html>502 Bad Gateway</html>"), None);
    }

    #[test]
    fn errors_of_views_say_so_at_their_end() {
        let is_of_a_view =
            |text| Exception::new(ErrorCode::VIOLATED_CONSTRAINT, text, "(version 26.7.2.1)").is_of_a_view();
        assert!(is_of_a_view("Column values: s = 'x': while pushing to view d.v."));
        assert!(is_of_a_view("thrown: while pushing to view d.v: while pushing to view d.`it's`."));
        assert!(!is_of_a_view("Column values: s = 'an error: while pushing to view d.v'."));
        assert!(!is_of_a_view("Column values: s = 'x'."));
    }

    #[test]
    fn the_row_of_an_error_is_found() {
        const READING: ErrorCode = ErrorCode::CANNOT_PARSE_INPUT_ASSERTION_FAILED;
        const CONSTRAINT: ErrorCode = ErrorCode::VIOLATED_CONSTRAINT;
        let row = |code, text| Exception::new(code, text, "").row();
        let violated = "Constraint `c` for table d.t is violated at row 8. Expression: (s != ''). Column values: s = ' is violated \
                        at row 3'.";
        assert_eq!(row(CONSTRAINT, violated), Some(8));
        assert_eq!(row(READING, "Cannot parse input: '(at row 5)': (at row 12)\n: While executing"), Some(12));
        for (code, text) in [
            (CONSTRAINT, "at row 7"),
            (CONSTRAINT, " is violated at row "),
            (READING, "(at row x)"),
            (READING, "(at row 0)"),
        ] {
            assert_eq!(row(code, text), None, "{text}");
        }
        assert_eq!(row(READING, "(at row 99999999999999999999999)"), None);
    }

    #[test]
    fn too_many_parts_pass_too_many_partitions_do_not() {
        let exception = |text| Exception::new(ErrorCode::TOO_MANY_PARTS, text, "");
        assert!(exception("Too many parts (3000 with average size of 1.00 KiB) in table 'd.t'.").is_passing());
        assert!(!exception("Too many partitions for single INSERT block (more than 100).").is_passing());
    }
}
