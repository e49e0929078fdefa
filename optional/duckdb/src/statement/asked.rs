//! The parts of one request's text: the statement, its clauses, and questions that only ClickHouse knows.

use windrow_sql::{tokens, Dialect, TableName, Token, TokenKind};

use super::clauses::{self, Clauses};
use super::kind::Kind;
use super::rewrite::rewrite;

/// A statement for DuckDB, and the clauses that stood at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The statement in DuckDB's spelling, without its clauses.
    pub sql: String,
    pub format: Option<String>,
    pub settings: Vec<(String, String)>,
    pub kind: Kind,
    /// The question about tables, if the statement is one that DuckDB lacks words for, or answers in another
    /// form.
    pub about: Option<About>,
}

/// A question about tables in ClickHouse's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// `DESCRIBE TABLE db.t`.
    Describe(TableName),
    /// `DESCRIBE (SELECT ...)`, with the query.
    DescribeQuery(String),
    /// `EXISTS TABLE db.t`.
    Exists(TableName),
    /// `SHOW TABLES [FROM db]`.
    Tables { database: Option<String> },
    /// `SHOW DATABASES`.
    Databases,
    /// `KILL QUERY WHERE query_id = 'x'` and other statements that only ClickHouse has.
    Foreign(&'static str),
}

/// The reason why a text can't be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    Empty,
    /// The text has several statements; `position` is that of the first `;`, counted in bytes from 1.
    SeveralStatements {
        position: usize,
    },
    /// A parameter `{name:Type}` has no value.
    NotSet(String),
    /// The value of a parameter is none of its type.
    Wrong {
        name: String,
        cause: String,
    },
}

/// The replacement of a parameter `{name:Type}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// A literal in DuckDB's SQL.
    Literal(String),
    /// The parameter has no value.
    Missing,
    /// The parameter's value is none of its type; the text says why.
    Wrong(String),
    /// The type is none of ClickHouse's, so the text is no parameter at all.
    NotOne,
}

/// Takes a text apart. `default_schema` is the schema that ClickHouse's database `default` stands for; it is
/// empty where the tables of `default` are named without a schema. `parameter` gives the value of
/// `{name:Type}`; `system_table` gives the name of the table that stands in for a table of `system`, if there
/// is one.
///
/// # Errors
/// Fails where the text has no statement or several, or a parameter without a value or with one that is none
/// of its type.
pub fn ask(
    text: &str,
    default_schema: &str,
    system_table: &dyn Fn(&str) -> Option<String>,
    parameter: &dyn Fn(&str, &str) -> Parameter,
) -> Result<Asked, RequestError> {
    let mut tokens = tokens(Dialect::DuckDb, text);
    while tokens.last().is_some_and(|token| token.is_symbol(b';')) {
        tokens.pop();
    }
    if tokens.is_empty() {
        return Err(RequestError::Empty);
    }
    if let Some(end) = tokens.iter().find(|token| token.is_symbol(b';')) {
        return Err(RequestError::SeveralStatements { position: end.start + 1 });
    }
    let Clauses { format, settings } = clauses::take(text, &mut tokens);
    if tokens.is_empty() {
        return Err(RequestError::Empty);
    }
    let kind = Kind::of(text, &tokens);
    let sql = rewrite(text, &tokens, default_schema, system_table, parameter)?;
    let about = about(text, &tokens, &sql);
    let kind = if about.is_some() { Kind::Reads } else { kind };
    Ok(Asked { sql, format, settings, kind, about })
}

fn about(text: &str, tokens: &[Token], sql: &str) -> Option<About> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_keyword(text, word));
    let name_from = |at: usize| table_name(text, tokens.get(at..)?);
    if is(0, "DESCRIBE") || is(0, "DESC") {
        let skipped = if is(1, "TABLE") { 2 } else { 1 };
        if let Some(name) = name_from(skipped) {
            return Some(About::Describe(name));
        }
        let rest = tokens.get(skipped)?;
        let is_query = rest.is_symbol(b'(') || rest.is_keyword(text, "SELECT") || rest.is_keyword(text, "WITH");
        return is_query.then(|| About::DescribeQuery(behind_words(sql, skipped)));
    }
    if is(0, "EXISTS") {
        let skipped = if is(1, "TABLE") || is(1, "VIEW") { 2 } else { 1 };
        return name_from(skipped).map(About::Exists);
    }
    if is(0, "SHOW") && is(1, "DATABASES") && tokens.len() == 2 {
        return Some(About::Databases);
    }
    if is(0, "SHOW") && is(1, "TABLES") {
        return match tokens.len() {
            2 => Some(About::Tables { database: None }),
            4 if is(2, "FROM") || is(2, "IN") => {
                Some(About::Tables { database: tokens[3].name(Dialect::DuckDb, text) })
            }
            _ => None,
        };
    }
    ["SYSTEM", "KILL", "OPTIMIZE", "GRANT", "REVOKE"].into_iter().find(|word| is(0, word)).map(About::Foreign)
}

/// Reads `t` or `db.t` with nothing behind it.
fn table_name(text: &str, tokens: &[Token]) -> Option<TableName> {
    match tokens {
        [table] if table.kind != TokenKind::String => {
            Some(TableName { database: None, table: table.name(Dialect::DuckDb, text)? })
        }
        [database, dot, table] if dot.is_symbol(b'.') => Some(TableName {
            database: Some(database.name(Dialect::DuckDb, text)?),
            table: table.name(Dialect::DuckDb, text)?,
        }),
        _ => None,
    }
}

/// Returns the statement without its first `count` words.
fn behind_words(sql: &str, count: usize) -> String {
    let tokens = tokens(Dialect::DuckDb, sql);
    tokens.get(count).map_or_else(String::new, |token| sql[token.start..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(table: &str) -> Option<String> {
        ["settings", "one"].contains(&table).then(|| format!("windrow.system_{table}"))
    }

    fn parameter(name: &str, data_type: &str) -> Parameter {
        match (name, data_type) {
            ("a", "UInt8") => Parameter::Literal("5".to_owned()),
            ("s", "Array(String)") => Parameter::Literal("['x']".to_owned()),
            (_, "UInt8") => Parameter::Missing,
            _ => Parameter::NotOne,
        }
    }

    fn asked(text: &str) -> Asked {
        ask(text, "main", &system, &parameter).unwrap()
    }

    #[test]
    fn clauses_are_taken_off_the_end() {
        let one = asked("select 'FORMAT x' from t format JSONEachRow settings a=1, b = 'it''s', c=-2 ;");
        assert_eq!((one.sql.as_str(), one.format.as_deref()), ("select 'FORMAT x' from t", Some("JSONEachRow")));
        let settings: Vec<_> = one.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(settings, ["a=1", "b=it's", "c=-2"]);
        assert_eq!(asked("select 1 settings max_threads=1 FORMAT CSV -- end").format.as_deref(), Some("CSV"));
        for untouched in ["select a as format", "copy t to 'x' format csv", "select settings from t", "select a format"]
        {
            let one = asked(untouched);
            assert_eq!((one.sql.as_str(), one.format, one.settings.len()), (untouched, None, 0));
        }
    }

    #[test]
    fn one_statement_is_enough() {
        assert_eq!(ask(" ; ", "main", &system, &parameter), Err(RequestError::Empty));
        assert_eq!(ask("-- x", "main", &system, &parameter), Err(RequestError::Empty));
        assert_eq!(
            ask("select 1;select 2", "main", &system, &parameter),
            Err(RequestError::SeveralStatements { position: 9 })
        );
        assert_eq!(asked("select ';' /* ; */;;").sql, "select ';'");
    }

    #[test]
    fn clickhouses_spellings_become_duckdbs() {
        let pairs = [
            ("select `a\"b` from `default`.`t u`", "select \"a\"\"b\" from main.\"t u\""),
            ("select * from default.t, system.settings s", "select * from main.t, windrow.system_settings s"),
            ("select system.one.dummy from system . one", "select windrow.system_one.dummy from windrow.system_one"),
            (
                "select * from system.main.x, a.default.b, system.other",
                "select * from system.main.x, a.default.b, system.other",
            ),
            ("select {a:UInt8}, {s:Array(String)}, {'a':1}, {b:c}", "select 5, ['x'], {'a':1}, {b:c}"),
            ("insert into t (a) values (default)", "insert into t (a) values (default)"),
            ("select 'default.t', `x`", "select 'default.t', \"x\""),
        ];
        for (given, wanted) in pairs {
            assert_eq!(asked(given).sql, wanted);
        }
        assert_eq!(ask("select {b:UInt8}", "main", &system, &parameter), Err(RequestError::NotSet("b".to_owned())));
    }

    #[test]
    fn the_default_database_may_have_no_name() {
        let asked = ask("select * from default.t, `default`.t", "", &system, &parameter).unwrap();
        assert_eq!(asked.sql, "select * from t, t");
    }

    #[test]
    fn questions_about_tables_are_recognised() {
        let name = |database: Option<&str>, table: &str| TableName {
            database: database.map(str::to_owned),
            table: table.to_owned(),
        };
        let about = |text: &str| asked(text).about;
        assert_eq!(about("DESCRIBE TABLE `d`.`t`"), Some(About::Describe(name(Some("d"), "t"))));
        assert_eq!(about("desc t format Native"), Some(About::Describe(name(None, "t"))));
        assert_eq!(about("describe (select 1)"), Some(About::DescribeQuery("(select 1)".to_owned())));
        assert_eq!(about("exists d.t"), Some(About::Exists(name(Some("d"), "t"))));
        assert_eq!(about("show tables from `d`"), Some(About::Tables { database: Some("d".to_owned()) }));
        assert_eq!(about("show databases"), Some(About::Databases));
        assert_eq!(about("kill query where 1"), Some(About::Foreign("KILL")));
        assert_eq!(about("select 1"), None);
    }

    #[test]
    fn no_text_is_too_strange() {
        let whole = "with `x` as (select {a:UInt8}, 'é', $$q$$ from default.t) select * from system.one format CSV settings a='b'";
        for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            let _ = ask(&whole[..end], "main", &system, &parameter);
        }
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut characters: Vec<char> = whole.chars().collect();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..characters.len());
                characters[at] = *random
                    .choice(&['\'', '"', '`', '{', '}', '.', ';', '\\', '$', '/', '*', 'é', '(', 'a', ':'])
                    .unwrap();
            }
            let text: String = characters.into_iter().collect();
            let _ = ask(&text, "main", &system, &parameter);
        }
    }
}
