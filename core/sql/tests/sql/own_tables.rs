//! References to the gateway's own system tables, found and rewritten.

use windrow_sql::{own_table_references, without_system_prefix, OwnTableUse};

const OWN: &[&str] = &["asynchronous_inserts", "asynchronous_insert_log"];

fn rewritten(text: &str, database: &str) -> String {
    let tables = own_table_references(text.as_bytes(), database, OWN);
    String::from_utf8(without_system_prefix(text.as_bytes(), &tables)).expect("the bytes left are those of a str")
}

fn names(text: &str, database: &str) -> Vec<String> {
    own_table_references(text.as_bytes(), database, OWN)
        .references
        .into_iter()
        .map(|reference| reference.table)
        .collect()
}

#[test]
fn qualified_names_lose_their_database() {
    let cases = [
        ("SELECT * FROM system.asynchronous_inserts", "SELECT * FROM asynchronous_inserts"),
        ("SELECT 1 FROM `system` . \"asynchronous_inserts\" a", "SELECT 1 FROM \"asynchronous_inserts\" a"),
        (
            "select system.asynchronous_inserts.query from system.asynchronous_inserts",
            "select asynchronous_inserts.query from asynchronous_inserts",
        ),
        (
            "SELECT 1 FROM x JOIN system.asynchronous_insert_log l USING a",
            "SELECT 1 FROM x JOIN asynchronous_insert_log l USING a",
        ),
        ("SELECT 1 WHERE q IN system.asynchronous_inserts", "SELECT 1 WHERE q IN asynchronous_inserts"),
        (
            "SELECT 1 FROM (SELECT * FROM system/**/./**/asynchronous_inserts)",
            "SELECT 1 FROM (SELECT * FROM asynchronous_inserts)",
        ),
        ("INSERT INTO t SELECT * FROM system.asynchronous_inserts", "INSERT INTO t SELECT * FROM asynchronous_inserts"),
    ];
    for (text, expected) in cases {
        assert_eq!(rewritten(text, "default"), expected);
        assert_eq!(own_table_references(text.as_bytes(), "default", OWN).usage, OwnTableUse::Reads, "{text:?}");
        assert!(!names(text, "default").is_empty());
    }
}

#[test]
fn what_only_looks_like_a_reference_stays() {
    for text in [
        "SELECT 'system.asynchronous_inserts'",
        "SELECT $$system.asynchronous_inserts$$",
        "SELECT 1 -- system.asynchronous_inserts",
        "SELECT 1 /* system.asynchronous_inserts */",
        "SELECT 1 FROM `system.asynchronous_inserts`",
        "SELECT 1 FROM asynchronous_inserts",
        "SELECT 1 FROM System.asynchronous_inserts",
        "SELECT 1 FROM system.ASYNCHRONOUS_INSERTS",
        "SELECT 1 FROM system.asynchronous_inserts2",
        "SELECT 1 FROM other.asynchronous_inserts",
        "SELECT a.system.asynchronous_inserts FROM x",
        "SELECT 1 FROM remote('host', system.asynchronous_inserts)",
        "SELECT 1 FROM clusterAllReplicas(default, (system.asynchronous_inserts))",
        "INSERT INTO system.asynchronous_inserts SELECT 1",
        "INSERT INTO t VALUES (system.asynchronous_inserts)",
        "INSERT INTO t FORMAT TSV\nsystem.asynchronous_inserts",
        "INSERT INTO t SELECT * FROM input('a String') FORMAT TSV\nsystem.asynchronous_inserts",
        "WITH 1 AS x INSERT INTO t FORMAT TSV\nsystem.asynchronous_inserts",
    ] {
        assert_eq!(names(text, "default"), Vec::<String>::new(), "{text:?}");
        assert_eq!(rewritten(text, "default"), text);
    }
    let text = "SELECT 1 FROM remote('h', system.one), system.asynchronous_inserts";
    assert_eq!(rewritten(text, "default"), "SELECT 1 FROM remote('h', system.one), asynchronous_inserts");
}

#[test]
fn unqualified_names_count_in_the_database_system() {
    let text = "SELECT * FROM asynchronous_insert_log, system.asynchronous_inserts FORMAT TSV";
    assert_eq!(names(text, "system"), ["asynchronous_insert_log", "asynchronous_inserts"]);
    assert_eq!(rewritten(text, "system"), "SELECT * FROM asynchronous_insert_log, asynchronous_inserts FORMAT TSV");
    assert_eq!(names("SELECT asynchronous_inserts.query FROM x", "default"), Vec::<String>::new());
}

#[test]
fn the_kind_of_use_is_told() {
    let usage = |text: &str| own_table_references(text.as_bytes(), "default", OWN).usage;
    for text in [
        "DESCRIBE TABLE system.asynchronous_inserts",
        "DESC system.asynchronous_inserts",
        "EXISTS system.asynchronous_inserts",
    ] {
        assert_eq!(usage(text), OwnTableUse::Describes, "{text:?}");
    }
    assert_eq!(usage("SHOW CREATE TABLE system.asynchronous_inserts"), OwnTableUse::Describes);
    assert_eq!(usage("CREATE VIEW v AS SELECT * FROM system.asynchronous_inserts"), OwnTableUse::Other);
    assert_eq!(usage("DROP TABLE system.asynchronous_inserts"), OwnTableUse::Other);
    assert_eq!(usage("EXPLAIN SELECT * FROM system.asynchronous_inserts"), OwnTableUse::Reads);
}
