//! Whether a text is one statement, and whether it begins as one that only reads.
//!
//! DuckDB runs all statements of a text. A second one would run outside of what was decided about the first: a `COMMIT`
//! would end the read-only transaction that a reader's statement is held in. So the text is walked as DuckDB's own lexer
//! walks it, and whatever follows a semicolon outside of quotes and comments refuses the whole.

use windrow_client::Exception;

use crate::errors::{READONLY, SYNTAX_ERROR};

/// With these a statement that only reads begins. What they can't be made to write is kept by the read-only transaction.
const READING: [&str; 12] = [
    "SELECT",
    "WITH",
    "FROM",
    "VALUES",
    "TABLE",
    "SHOW",
    "DESCRIBE",
    "DESC",
    "SUMMARIZE",
    "PIVOT",
    "UNPIVOT",
    "PIVOT_WIDER",
];

pub(crate) fn check(sql: &str, readonly: bool, version: &str) -> Result<(), Exception> {
    let Some(first) = first_statement(sql) else {
        return Err(Exception::new(SYNTAX_ERROR, "Only one statement may be sent at a time", version));
    };
    if first.is_empty() {
        return Err(Exception::new(SYNTAX_ERROR, "Empty query", version));
    }
    if readonly && !only_reads(first) {
        return Err(Exception::new(READONLY, "Cannot execute query in readonly mode", version));
    }
    Ok(())
}

fn only_reads(statement: &str) -> bool {
    let statement = behind_brackets(statement);
    match first_word(statement) {
        word if word.eq_ignore_ascii_case("EXPLAIN") => begins_reading(explained(&statement[word.len()..])),
        _ => begins_reading(statement),
    }
}

fn begins_reading(statement: &str) -> bool {
    let word = first_word(behind_brackets(statement));
    READING.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// What an EXPLAIN is about. With ANALYZE it is run, and no transaction holds what it does to settings or files.
fn explained(mut rest: &str) -> &str {
    loop {
        rest = skip_blank(rest);
        if rest.starts_with('(') {
            // Either its options, or the statement itself.
            if begins_reading(rest) {
                return rest;
            }
            rest = &rest[bracket_bytes(rest)..];
            continue;
        }
        match first_word(rest) {
            word if word.eq_ignore_ascii_case("ANALYZE") => rest = &rest[word.len()..],
            _ => return rest,
        }
    }
}

/// From an opening bracket to its closing one. One that is never closed takes all.
fn bracket_bytes(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0u32);
    while at < text.len() {
        match text.as_bytes()[at] {
            b'(' => depth += 1,
            b')' if depth == 1 => return at + 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += token_bytes(&text[at..]);
    }
    text.len()
}

/// Brackets around a statement, with blanks between them.
fn behind_brackets(mut text: &str) -> &str {
    loop {
        text = skip_blank(text);
        match text.strip_prefix('(') {
            Some(inner) => text = inner,
            None => return text,
        }
    }
}

/// What a statement begins with, such as `SELECT`.
pub(crate) fn first_word(statement: &str) -> &str {
    let statement = skip_blank(statement);
    statement.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The text from its first token on, if nothing follows its first statement.
fn first_statement(sql: &str) -> Option<&str> {
    let first = skip_blank(sql);
    let mut rest = first;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(';') {
            let after = after.trim_start_matches(';');
            return only_blank(after).then(|| &first[..first.len() - rest.len()]);
        }
        rest = &rest[token_bytes(rest)..];
    }
    Some(first)
}

fn only_blank(mut text: &str) -> bool {
    loop {
        text = skip_blank(text);
        match text.strip_prefix(';') {
            Some(rest) => text = rest,
            None => return text.is_empty(),
        }
    }
}

/// The text behind white space and comments.
fn skip_blank(mut text: &str) -> &str {
    loop {
        let bytes = match text.chars().next() {
            Some(c) if c.is_whitespace() => c.len_utf8(),
            _ if text.starts_with("--") || text.starts_with("/*") => token_bytes(text),
            _ => return text,
        };
        text = &text[bytes..];
    }
}

/// Bytes of what begins here: a quoted text, a comment, or one character.
fn token_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'\'' => quoted(text, b'\'', false),
        b'"' => quoted(text, b'"', false),
        b'e' | b'E' if bytes.get(1) == Some(&b'\'') => 1 + quoted(&text[1..], b'\'', true),
        b'$' => dollar_quoted(text),
        b'-' if bytes.get(1) == Some(&b'-') => text.find(['\n', '\r']).unwrap_or(text.len()),
        b'/' if bytes.get(1) == Some(&b'*') => comment(bytes),
        // A word as a whole, so that its end is not taken for the E before a text.
        first if first.is_ascii_alphanumeric() || first == b'_' || first >= 0x80 => {
            let part = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$') || *c >= 0x80;
            bytes.iter().take_while(|c| part(c)).count()
        }
        _ => 1,
    }
}

/// From quote to quote; a doubled one belongs to the text. One that is never closed takes all.
fn quoted(text: &str, quote: u8, backslashes: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslashes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `$tag$ ... $tag$`.
fn dollar_quoted(text: &str) -> usize {
    let tag_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let Some(close) = text[1..].find(|c| !tag_part(c)) else { return 1 };
    let tag_bytes = close + 2;
    if text.as_bytes()[1 + close] != b'$' || text.as_bytes()[1].is_ascii_digit() {
        return 1;
    }
    let (tag, rest) = text.split_at(tag_bytes);
    rest.find(tag).map_or(text.len(), |end| 2 * tag_bytes + end)
}

/// Comments may stand in comments.
fn comment(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < bytes.len() && depth > 0 {
        match &bytes[at..(at + 2).min(bytes.len())] {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_is_one() {
        for sql in [
            "SELECT 1",
            "SELECT 1;",
            "SELECT 1 ; ; -- done;\n /* ; */",
            "SELECT ';', \";\", 'it''s;', E'\\';', $$;$$, $a$;$$;$a$ -- ;",
            "/* a; /* b; */ c; */ SELECT 1",
            "SELECT $1, a$b",
            "SELECT date'2020-01-01;'",
        ] {
            assert!(first_statement(sql).is_some(), "{sql}");
        }
    }

    #[test]
    fn several_are_refused() {
        for sql in [
            "SELECT 1; SELECT 2",
            "SELECT 1;COMMIT;",
            "SELECT 'a\\'; COMMIT --'",
            "SELECT 1 -- x\n; COMMIT",
            "SELECT $1; COMMIT; SELECT $1",
            "SELECT $$a$$; COMMIT",
            "SELECT /* /* */ 1 */; COMMIT",
            "SELECT name'x\\'; COMMIT; --'",
            ";; SELECT 1; SELECT 2",
        ] {
            assert!(check(sql, false, "").is_err(), "{sql}");
        }
    }

    #[test]
    fn no_depth_is_too_much() {
        for part in ["(/**/", "; ", "EXPLAIN ", "()", "/* */", "EXPLAIN ("] {
            let sql = format!("SELECT 1;{0}", part.repeat(100_000));
            let _ = check(&sql, true, "");
            let _ = check(&sql["SELECT 1;".len()..], true, "");
        }
    }

    #[test]
    fn readers_only_read() {
        for sql in [
            "SELECT 1",
            " /* c */ with a as (select 1) from a",
            "((SELECT 1))",
            "( (select 1))",
            "from t",
            "EXPLAIN SELECT 1",
            "explain analyze select 1",
            "EXPLAIN (ANALYZE, FORMAT json) SELECT 1",
            "EXPLAIN (SELECT 1) UNION (SELECT 2)",
            "(/**/ (/**/ select 1))",
        ] {
            assert!(check(sql, true, "").is_ok(), "{sql}");
        }
        for sql in
            ["INSERT INTO t VALUES (1)", "COPY t TO 'f'", "SET threads=1", "selectx", "", "  ", "COMMIT", "PRAGMA x"]
                .into_iter()
                .chain([
                    "EXPLAIN",
                    "EXPLAIN ANALYZE SET GLOBAL memory_limit = '1MB'",
                    "/**/ explain /**/ analyze /**/ COPY t TO 'f'",
                    "EXPLAIN (ANALYZE, FORMAT json) COMMIT",
                    "EXPLAIN (ANALYZE) (ANALYZE) SET threads = 1",
                    "EXPLAIN EXPLAIN ANALYZE SET threads = 1",
                ])
        {
            assert!(check(sql, true, "").is_err(), "{sql}");
        }
    }
}
