//! Expressions that have the same value for a row of a batch as for the same row in its own insert.
//!
//! A batch is an INSERT of its own: it has other headers, another query id, other settings, sometimes another
//! account, and rows of several inserts in its blocks. So only functions are trusted that are known to depend
//! on nothing but their arguments, the time, chance, or the content of other tables. Functions of a later
//! ClickHouse and of users are not known. (ClickHouse itself replaces a function made in SQL by its body.)

use std::collections::HashSet;
use std::sync::LazyLock;

use windrow_columns::DefaultKind;
use windrow_sql::{tokens, Dialect, Token, TokenKind};

use super::schema::Column;

/// Trusted functions of ClickHouse 26.7. A star behind a name means that upper and lower case are the same.
const TRUSTED: &str = include_str!("clickhouse_functions.txt");

/// Functions of the session that are also called without parentheses, in upper or lower case.
const OF_SESSION: [&str; 8] = [
    "current_database",
    "current_user",
    "currentdatabase",
    "currentuser",
    "database",
    "schema",
    "session_user",
    "user",
];

/// Combinators that may stand behind the name of an aggregate function.
const COMBINATORS: [&str; 13] = [
    "ArgMax",
    "ArgMin",
    "Array",
    "Distinct",
    "ForEach",
    "If",
    "Map",
    "Merge",
    "OrDefault",
    "OrNull",
    "Resample",
    "SimpleState",
    "State",
];

/// Keywords that may stand in front of a parenthesis, and are no functions.
const KEYWORDS: [&str; 22] = [
    "ALL", "AND", "AS", "ASSUME", "BETWEEN", "BY", "CHECK", "ELSE", "EXISTS", "FROM", "HAVING", "ILIKE", "IN", "LIKE",
    "NOT", "ON", "OR", "SELECT", "THEN", "USING", "WHEN", "WHERE",
];

/// Functions that give a view other rows in a batch than in the insert itself. Their names are in lower case
/// and without underscores. (Functions of the block are not among them: gathering means to share blocks.)
const OF_REQUEST: [&str; 23] = [
    "authenticateduser",
    "authuser",
    "connectionid",
    "currentdatabase",
    "currentprofiles",
    "currentqueryid",
    "currentroles",
    "currentschemas",
    "currentuser",
    "database",
    "defaultprofiles",
    "defaultroles",
    "enabledprofiles",
    "enabledroles",
    "getclienthttpheader",
    "getsetting",
    "getsettingordefault",
    "initialqueryid",
    "queryid",
    "schema",
    "sessionuser",
    "transactionid",
    "user",
];

/// SQL for the definition of a table, if there may be constraints in it, else for an empty text.
pub(super) const CONSTRAINTS: &str = "if(position(create_table_query, ' CONSTRAINT ') > 0, create_table_query, '')";

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let (in_any_case, exact): (Vec<&str>, Vec<&str>) = TRUSTED.lines().partition(|line| line.ends_with('*'));
    let in_any_case = in_any_case.into_iter().map(|line| line.trim_end_matches('*')).collect();
    Names { exact: exact.into_iter().collect(), in_any_case }
});

struct Names {
    exact: HashSet<&'static str>,
    /// Names that are the same in upper and lower case; here they are in lower case.
    in_any_case: HashSet<&'static str>,
}

impl Names {
    /// Says whether a function is trusted. `sumIf`, `uniqState` and the like count as `sum` and `uniq`.
    fn have(&self, function: &str) -> bool {
        let of = |suffix: &&str| function.strip_suffix(suffix).is_some_and(|function| self.have(function));
        self.exact.contains(function)
            || self.in_any_case.contains(function.to_ascii_lowercase().as_str())
            || COMBINATORS.iter().any(of)
    }
}

/// Marks the columns whose expressions read the request, directly or by way of an ALIAS.
pub(super) fn find_those_that_read_the_request(columns: &mut [Column]) {
    loop {
        let is_found = |column: &Column| !column.reads_request && reads_request(&column.default_expression, columns);
        let found: Vec<bool> = columns.iter().map(is_found).collect();
        if !found.contains(&true) {
            return;
        }
        columns.iter_mut().zip(found).for_each(|(column, found)| column.reads_request |= found);
    }
}

pub(super) fn reads_request(expression: &str, columns: &[Column]) -> bool {
    let is_column = |word: &str| columns.iter().any(|column| column.name == word);
    let is_doubtful = |column: &&Column| column.default_kind == DefaultKind::Alias && column.reads_request;
    !expression.is_empty()
        && (!are_trusted(expression, is_column)
            || columns.iter().filter(is_doubtful).any(|column| names(expression, &column.name)))
}

/// Says whether ClickHouse may be asked for the values of a text: all functions that the text calls must be
/// trusted, or tell of the session, which the question shares.
pub(crate) fn may_be_asked(text: &str) -> bool {
    let is_of_session = |name: &str| name.eq_ignore_ascii_case("timezone") || is_of_session(name);
    calls_only(text, |function| NAMES.have(function) || is_of_session(function), |_| true)
}

/// Says whether all functions of an expression are trusted. `is_column` tells which bare words are columns.
fn are_trusted(expression: &str, is_column: impl Fn(&str) -> bool) -> bool {
    calls_only(expression, |function| NAMES.have(function), |word| !is_of_session(word) || is_column(word))
}

/// Says whether a view reads the request, by its definition, which is empty for a table. A bare `user`,
/// `database` or `schema` is a column in all likelihood.
pub(super) fn view_reads_request(definition: &str) -> bool {
    let is_of_request = |name: &str| OF_REQUEST.contains(&name.replace('_', "").to_ascii_lowercase().as_str());
    let is_plain = |word: &str| ["user", "database", "schema"].iter().any(|plain| word.eq_ignore_ascii_case(plain));
    !calls_only(definition, |function| !is_of_request(function), |word| is_plain(word) || !is_of_session(word))
}

fn is_of_session(name: &str) -> bool {
    OF_SESSION.iter().any(|function| function.eq_ignore_ascii_case(name))
}

fn calls_only(text: &str, may_call: impl Fn(&str) -> bool, may_be_bare: impl Fn(&str) -> bool) -> bool {
    let tokens = tokens(Dialect::ClickHouse, text);
    tokens.iter().enumerate().all(|(at, token)| {
        let before = &tokens[..at];
        let is_called = tokens.get(at + 1).is_some_and(|next| next.is_symbol(b'('));
        match token.kind {
            TokenKind::Error => false,
            TokenKind::Word | TokenKind::QuotedIdentifier if is_called => {
                is_type(before, text)
                    || is_table(before, text)
                    || is_keyword(token, text)
                    || name(token, text).is_some_and(|it| may_call(&it))
            }
            TokenKind::Word if !before.last().is_some_and(|before| before.is_symbol(b'.')) => {
                may_be_bare(token.text(text))
            }
            _ => true,
        }
    })
}

/// Says whether a text has this name in it, be it of a column or of anything else.
fn names(text: &str, wanted: &str) -> bool {
    tokens(Dialect::ClickHouse, text).iter().any(|token| name(token, text).is_some_and(|name| name == wanted))
}

/// Returns the constraints in a table's definition, where they stand behind the columns. It may be empty.
pub(super) fn constraints(definition: &str) -> &str {
    let (mut depth, mut start, mut is_behind_comma) = (0, None, false);
    for token in tokens(Dialect::ClickHouse, definition) {
        match token.kind {
            TokenKind::Symbol(b'(') => depth += 1,
            TokenKind::Symbol(b')') => depth -= 1,
            _ if depth == 1 && is_behind_comma && token.is_keyword(definition, "CONSTRAINT") => {
                start = start.or(Some(token.start));
            }
            _ => {}
        }
        let is_end = depth < 1 || (depth == 1 && token.is_keyword(definition, "PROJECTION"));
        if let Some(start) = start.filter(|_| is_end) {
            return &definition[start..token.start];
        }
        is_behind_comma = token.is_symbol(b',');
    }
    start.map_or("", |start| &definition[start..])
}

fn is_keyword(token: &Token, text: &str) -> bool {
    KEYWORDS.iter().any(|keyword| token.is_keyword(text, keyword))
}

/// Says whether the name that follows is a table function's. In `trim('x' FROM f())` it is not.
fn is_table(before: &[Token], text: &str) -> bool {
    let is = |token: &Token, keywords: [&str; 2]| keywords.iter().any(|keyword| token.is_keyword(text, keyword));
    let mut depth = 0;
    let is_outside = |token: &Token| {
        match token.kind {
            TokenKind::Symbol(b'(') => depth -= 1,
            TokenKind::Symbol(b')') => depth += 1,
            _ => {}
        }
        depth < 0
    };
    before.last().is_some_and(|last| is(last, ["FROM", "JOIN"]))
        && before.iter().rposition(is_outside).is_some_and(|at| is(&before[at + 1], ["SELECT", "WITH"]))
}

/// Says whether the name that follows is a type's: `x::T`, `CAST(x AS T)`, `{x:T}`.
fn is_type(before: &[Token], text: &str) -> bool {
    match before {
        [.., last] if last.is_keyword(text, "AS") || last.text(text) == "::" => true,
        [.., parameter, last] => last.is_symbol(b':') && parameter.is_identifier(),
        _ => false,
    }
}

fn name(token: &Token, text: &str) -> Option<String> {
    token.name(Dialect::ClickHouse, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_the_row_the_time_or_chance_is_trusted() {
        for text in [
            "n + 1",
            "concat(s, toString(n))",
            "multiIf(n = 1, 'currentUser()', s)",
            "NOT (n IN (1, 2))",
            "arrayMap((x, y) -> (x + y), a, b)",
            "now() - toIntervalDay(1)",
            "NOW",
            "generateUUIDv4()",
            "CAST(n AS Decimal(9, 2))",
            "n::Decimal(9, 2)",
            "dictGet('d', 'v', n)",
            "upper(user)",
            "t.user",
            "CURRENT_TIMESTAMP",
        ] {
            assert!(are_trusted(text, |name| name == "user"), "{text}");
        }
    }

    #[test]
    fn what_reads_the_request_or_the_block_is_not() {
        for text in [
            "currentUser()",
            "`currentUser`()",
            "currentUser ()",
            "concat('x', /* y */ queryID())",
            "CURRENT_USER",
            "database",
            "rowNumberInBlock()",
            "getSetting('max_threads')",
            "getClientHTTPHeader('X')",
            "a_users_own_function(n)",
            "TOSTRING(n)",
            "{'k':currentUser()}",
            "'unclosed",
        ] {
            assert!(!are_trusted(text, |name| name == "n"), "{text}");
        }
    }

    #[test]
    fn what_tells_of_the_session_may_be_asked_for() {
        for text in [
            "({x:Array(UInt64)}, concat(currentUser(), CURRENT_DATABASE, timezone()))",
            "((SELECT count() + 1 FROM t WHERE (a > 1)))",
            "((SELECT uniqState(number), sumArrayIf(a, b) FROM numbers(10) AS t JOIN url('x') AS u USING (a)))",
        ] {
            assert!(may_be_asked(text), "{text}");
        }
        for text in ["(queryID())", "(rowNumberInBlock())", "((SELECT trim(LEADING 'x' FROM queryID()) FROM t))"] {
            assert!(!may_be_asked(text), "{text}");
        }
    }

    #[test]
    fn constraints_are_what_stands_between_the_columns_and_the_engine() {
        let definition =
            "CREATE TABLE constraint (n Int8 DEFAULT f(' CONSTRAINT '), CONSTRAINT a CHECK (n > 0) AND f(n), \
                          PROJECTION p (SELECT g(n))) ENGINE = h('x') ORDER BY n";
        assert_eq!(constraints(definition), "CONSTRAINT a CHECK (n > 0) AND f(n), ");
        assert_eq!(constraints("T (n Int8, CONSTRAINT a CHECK n) ENGINE = h('x')"), "CONSTRAINT a CHECK n");
        assert_eq!(constraints("T (n Int8) COMMENT ' CONSTRAINT '"), "");
    }

    #[test]
    fn views_are_looked_at_for_what_they_read_of_the_request() {
        let view = |select: &str| {
            view_reads_request(&format!("CREATE MATERIALIZED VIEW d.v TO d.t (`n` UInt8) AS SELECT {select} FROM d.s"))
        };
        for select in ["query_id()", "toString(currentUser())", "CURRENT_USER", "`getSetting`('x')", "User()"] {
            assert!(view(select), "{select}");
        }
        for select in ["user", "s.database", "hostName()", "rowNumberInBlock()", "'currentUser()'", "countMerge(n)"] {
            assert!(!view(select), "{select}");
        }
        assert!(!view_reads_request(""));
    }

    #[test]
    fn names_are_found_however_they_are_quoted() {
        assert!(names("upper(`a b`)", "a b") && names("upper(g)", "g"));
        assert!(!names("upper('g')", "g") && !names("upper(gg)", "g"));
    }
}
