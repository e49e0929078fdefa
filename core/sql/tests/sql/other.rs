//! Facts that the gateway learns from statements that it forwards.

use windrow_sql::{backquote, classify, quote_string, DdlScope, Leading, OtherStatement, Statement, TableName};

fn other(text: &str) -> OtherStatement {
    match classify(text.as_bytes()) {
        Statement::Other(other) => other,
        unexpected => panic!("{text:?} is {unexpected:?}"),
    }
}

/// Reads `db.t` or `t`.
fn name(dotted: &str) -> TableName {
    match dotted.split_once('.') {
        Some((database, table)) => TableName { database: Some(database.to_owned()), table: table.to_owned() },
        None => TableName { database: None, table: dotted.to_owned() },
    }
}

fn tables(list: &[&str]) -> DdlScope {
    DdlScope::Tables(list.iter().map(|dotted| name(dotted)).collect())
}

#[test]
fn readers_change_nothing() {
    let cases = [
        ("SELECT 1", Leading::Select),
        ("((select 1) UNION ALL (select 2))", Leading::Select),
        ("/* x */ WITH 1 AS a SELECT a", Leading::With),
        ("FROM t SELECT x", Leading::From),
        ("SHOW TABLES", Leading::Show),
        ("DESC t", Leading::Describe),
        ("DESCRIBE TABLE t", Leading::Describe),
        ("EXPLAIN SELECT 1", Leading::Explain),
        ("EXISTS TABLE t", Leading::Exists),
        ("CHECK TABLE t", Leading::Check),
        ("INSERT INTO t SELECT 1", Leading::Insert),
        ("WITH 1 AS x INSERT INTO t VALUES (x)", Leading::With),
        ("OPTIMIZE TABLE t FINAL", Leading::Optimize),
        ("DELETE FROM t WHERE 1", Leading::Delete),
        ("KILL QUERY WHERE 1", Leading::Kill),
        ("SYSTEM FLUSH LOGS", Leading::System),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE ON CLUSTER c", Leading::System),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE a b", Leading::System),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE 'a'", Leading::System),
    ];
    for (text, leading) in cases {
        let other = other(text);
        assert_eq!(other.leading, leading, "{text:?}");
        assert!(!other.is_ddl() && !other.changes_session() && !other.changes_access(), "{text:?}");
    }
}

#[test]
fn ddl_names_its_tables() {
    let cases: &[(&str, DdlScope)] = &[
        ("ALTER TABLE d.t ADD COLUMN x Int8", tables(&["d.t"])),
        ("ALTER TABLE IF EXISTS `t` ON CLUSTER c DROP COLUMN x", tables(&["t"])),
        ("DROP TABLE t", tables(&["t"])),
        ("DROP TABLE IF EXISTS a, d.b SYNC", tables(&["a", "d.b"])),
        ("DROP VIEW v", tables(&["v"])),
        ("DETACH TABLE t PERMANENTLY", tables(&["t"])),
        ("ATTACH TABLE t", tables(&["t"])),
        ("UNDROP TABLE t", tables(&["t"])),
        ("TRUNCATE TABLE IF EXISTS t", tables(&["t"])),
        ("TRUNCATE t", tables(&["t"])),
        ("RENAME TABLE a TO b, d.c TO d.e", tables(&["a", "b", "d.c", "d.e"])),
        ("EXCHANGE TABLES a AND b", tables(&["a", "b"])),
        ("CREATE TABLE t (a Int8) ENGINE = Memory", tables(&["t"])),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS d.t AS x", tables(&["d.t"])),
        ("REPLACE TABLE t (a Int8)", tables(&["t"])),
        ("CREATE MATERIALIZED VIEW v TO t AS SELECT 1", tables(&["v"])),
        ("CREATE VIEW v AS SELECT 1", tables(&["v"])),
        ("CREATE DICTIONARY d (a Int8)", tables(&["d"])),
        ("DROP DATABASE IF EXISTS d", DdlScope::Database("d".to_owned())),
        ("CREATE DATABASE d", DdlScope::Anything),
        ("RENAME DATABASE a TO b", DdlScope::Anything),
        ("RENAME a TO b", DdlScope::Anything),
        ("TRUNCATE ALL TABLES FROM `d e`", DdlScope::Database("d e".to_owned())),
        ("TRUNCATE DATABASE d", DdlScope::Database("d".to_owned())),
        ("DROP INDEX i ON t", DdlScope::Anything),
        ("DROP TABLE {t:Identifier}", DdlScope::Anything),
        ("CREATE FUNCTION f AS x -> x", DdlScope::Anything),
        ("OPTIMIZE TABLE t PARALLEL WITH DROP TABLE x", DdlScope::Anything),
        ("DROP TABLE a PARALLEL/**/WITH DROP TABLE b", DdlScope::Anything),
        ("RESTORE TABLE t FROM Disk('d', 'x')", DdlScope::Anything),
        ("TURN everything", DdlScope::Anything),
    ];
    for (text, scope) in cases {
        let other = other(text);
        assert_eq!(other.ddl_scope(), scope, "{text:?}");
        assert!(other.is_ddl(), "{text:?}");
    }
}

#[test]
fn what_changes_the_session_is_told() {
    for text in [
        "SET a = 1",
        "SET ROLE r",
        "USE d",
        "BEGIN TRANSACTION",
        "COMMIT",
        "ROLLBACK",
        "START TRANSACTION",
        "SET TRANSACTION SNAPSHOT 1",
        "CREATE TEMPORARY TABLE t (a Int8)",
        "CREATE OR REPLACE TEMPORARY TABLE t (a Int8)",
        "DROP TEMPORARY TABLE t",
        "TRUNCATE TEMPORARY TABLE t",
        "EXECUTE AS joe SELECT 1",
        "1 + 2",
        "`quoted`",
        "'unclosed",
        "?",
    ] {
        assert!(other(text).changes_session(), "{text:?}");
    }
    for text in ["CREATE TABLE temporary (a Int8)", "DROP TABLE t", "GRANT SELECT ON t TO joe", "CREATE USER joe"] {
        assert!(!other(text).changes_session(), "{text:?}");
    }
}

#[test]
fn what_changes_access_is_told() {
    for text in [
        "GRANT SELECT ON t TO joe",
        "REVOKE SELECT ON t FROM joe",
        "CREATE USER OR REPLACE joe",
        "CREATE OR REPLACE USER joe",
        "ALTER USER joe IDENTIFIED BY 'x'",
        "DROP USER IF EXISTS joe",
        "CREATE ROLE r",
        "DROP ROW POLICY p ON t",
        "ALTER QUOTA q",
        "CREATE SETTINGS PROFILE p",
        "ALTER PROFILE p",
        "MOVE USER joe TO x",
        "SET DEFAULT ROLE r TO joe",
        "SYSTEM RELOAD CONFIG",
        "SYSTEM RELOAD USERS",
        "EXECUTE AS x GRANT SELECT ON t TO joe",
        "RESTORE ALL FROM Disk('d', 'x')",
    ] {
        assert!(other(text).changes_access(), "{text:?}");
    }
    for text in ["SET a = 1", "CREATE TABLE user (a Int8)", "DROP TABLE role", "SYSTEM RELOAD DICTIONARIES"] {
        assert!(!other(text).changes_access(), "{text:?}");
    }
}

#[test]
fn the_flush_command_is_recognised() {
    let cases: &[(&str, &[&str])] = &[
        ("SYSTEM FLUSH ASYNC INSERT QUEUE", &[]),
        ("system flush /* now */ async insert queue ; ", &[]),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE t", &["t"]),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE d.t, `u`;", &["d.t", "u"]),
    ];
    for (text, names) in cases {
        let tables = names.iter().map(|dotted| name(dotted)).collect();
        assert_eq!(classify(text.as_bytes()), Statement::SystemFlushAsyncInsertQueue { tables }, "{text:?}");
    }
}

#[test]
fn what_has_not_come_to_its_point_is_incomplete() {
    for text in [
        "",
        " \n\t",
        "-- c",
        "/* c",
        "/* /* c */",
        "\u{FEFF}",
        "INSERT",
        "INSERT INTO t",
        "INSERT INTO t (a",
        "INSERT INTO t (a) SETTINGS a='x",
        "INSERT INTO t FORMAT",
        "INSERT INTO t /* ",
    ] {
        assert_eq!(classify(text.as_bytes()), Statement::Incomplete, "{text:?}");
    }
}

#[test]
fn quoted_names_and_strings_are_read_back_as_they_were() {
    for text in ["a", "a b", "it's", "a`b", "back\\slash", "\\'", "\n\t\0", "ü“”‘’", "\\x41"] {
        let sql = format!("INSERT INTO {} SETTINGS a={} VALUES", backquote(text), quote_string(text));
        let Statement::Insert(insert) = classify(sql.as_bytes()) else { panic!("{sql:?}") };
        let table = insert.table.resolve(|_| None).expect("the text names its table").table;
        assert_eq!((table.as_str(), insert.settings[0].1.as_str()), (text, text), "{sql:?}");
    }
}
