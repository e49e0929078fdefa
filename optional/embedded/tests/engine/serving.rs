//! Tests of the queries that a running engine answers, and for which users.

use windrow_embedded::{Embedded, EmbeddedError, EmbeddedUser};

use crate::support::{query, query_as, DataDir};

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_its_user_and_nobody_else() {
    let data = DataDir::new();
    let embedded = data.start().await;
    let endpoint = embedded.endpoint();
    let port = endpoint.http_port;
    assert_eq!(endpoint.url, format!("http://127.0.0.1:{port}"));
    assert_eq!(query(endpoint, "SELECT currentUser()").as_deref(), Ok("windrow"));
    query(endpoint, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    query(endpoint, "INSERT INTO t VALUES (1), (2)").expect("inserted");
    assert_eq!(query(endpoint, "SELECT sum(a) FROM t").as_deref(), Ok("3"));
    query(endpoint, "ALTER TABLE t UPDATE b = 1 WHERE 1").expect_err("no such column");
    query(endpoint, "CREATE DATABASE more").expect("created");

    let wrong = query_as(port, "windrow", "guessed", "SELECT 1").expect_err("a wrong password");
    assert!(wrong.contains("Code: 516"), "{wrong}");
    for statement in [
        "SELECT * FROM t",
        "SELECT * FROM system.numbers LIMIT 1",
        "CREATE TABLE u (a Int8) ENGINE = Memory",
        "SYSTEM STOP LISTEN HTTP",
    ] {
        let refused = query_as(port, "default", "", statement).expect_err(statement);
        assert!(refused.contains("Code: 201") || refused.contains("Code: 497"), "{statement}: {refused}");
    }
    query(endpoint, "SELECT 1").expect("it still listens");
    embedded.stop(std::time::Duration::from_secs(30)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_files_are_their_owners_only() {
    let data = DataDir::new();
    let embedded = data.start().await;
    query(embedded.endpoint(), "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    for folder in ["", "embedded", "embedded/data", "embedded/data/store"] {
        assert_eq!(data.mode(folder), 0o700, "{folder}");
    }
    for file in ["config.xml", "users.xml", "endpoint.json", "data/status"] {
        assert_eq!(data.mode(&format!("embedded/{file}")), 0o600, "{file}");
    }
    let text = std::fs::read_to_string(data.0.join("embedded/endpoint.json")).expect("a file");
    let written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(written["url"], embedded.endpoint().url);
    assert_eq!(written["password"], embedded.endpoint().password);
    assert!(!format!("{:?}", embedded.endpoint()).contains(&embedded.endpoint().password));
}

#[tokio::test(flavor = "multi_thread")]
async fn further_users_may_do_what_they_were_granted() {
    let user = |name: &str, grants: &[&str]| EmbeddedUser {
        name: name.to_owned(),
        password: "a<&>\"'b".to_owned(),
        grants: grants.iter().map(|grant| (*grant).to_owned()).collect(),
        settings: vec![("max_threads".to_owned(), "3".to_owned())],
    };
    let data = DataDir::new();
    let mut options = data.options();
    options.users = vec![user("joe", &["GRANT SELECT, INSERT(a) ON default.t"]), user("nobody", &[])];
    let embedded = Embedded::start(options).await.expect("it starts");
    let endpoint = embedded.endpoint();
    query(endpoint, "CREATE TABLE t (a UInt64, b UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    let ask = |name: &str, statement: &str| query_as(endpoint.http_port, name, "a<&>\"'b", statement);
    ask("joe", "INSERT INTO t (a) VALUES (1)").expect("granted");
    assert_eq!(ask("joe", "SELECT a, getSetting('max_threads') FROM t").as_deref(), Ok("1\t3"));
    ask("joe", "INSERT INTO t (b) VALUES (1)").expect_err("not granted");
    let refused = ask("nobody", "SELECT * FROM t").expect_err("nothing granted");
    assert!(refused.contains("Code: 497"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn system_logs_are_kept_when_asked_for() {
    let data = DataDir::new();
    let mut options = data.options();
    options.system_logs = true;
    let embedded = Embedded::start(options).await.expect("it starts");
    let endpoint = embedded.endpoint();
    query(endpoint, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    query(endpoint, "INSERT INTO t SELECT 1").expect("inserted");
    query(endpoint, "SYSTEM FLUSH LOGS").expect("flushed");
    let parts = query(endpoint, "SELECT count() FROM system.part_log WHERE table = 't' AND event_type = 'NewPart'");
    assert_eq!(parts.as_deref(), Ok("1"));
    let queries =
        query(endpoint, "SELECT count() FROM system.query_log WHERE query = 'INSERT INTO t SELECT 1' AND type = 2");
    assert_eq!(queries.as_deref(), Ok("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_ends_at_once_is_reported_with_its_last_words() {
    let data = DataDir::new();
    let mut options = data.options();
    options.engine = Some(data.script("echo 'the disk is on fire' >&2; exit 3"));
    let error = Embedded::start(options).await.err().expect("it can't start").to_string();
    assert!(error.contains("the disk is on fire") && error.contains("exit status: 3"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_never_answers_is_given_up() {
    let data = DataDir::new();
    let mut options = data.options();
    options.engine = Some(data.script("echo 'thinking' >&2; exec tail -f /dev/null"));
    options.start_timeout = std::time::Duration::from_millis(200);
    let error = Embedded::start(options).await.err().expect("it does not answer");
    assert!(matches!(error, EmbeddedError::Silent { .. }), "{error}");
}
