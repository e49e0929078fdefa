//! `[[kafka]]`: entries, the variables and flags that override their keys, and entries that don't fit.

use crate::common::{errors_of, load, load_text, File};
use windrow_settings::{
    KafkaColumn, KafkaOnError, KafkaSasl, KafkaSettings, KafkaStart, KafkaToken, KafkaTopics, Settings,
};

const EVENTS: &str =
    "[[kafka]]\nbrokers = [\"127.0.0.1:9092\"]\ntopics = [\"events\"]\ntable = \"events\"\nformat = \"JSONEachRow\"\n";

fn only(settings: &Settings) -> &KafkaSettings {
    let [pipeline] = settings.kafka.as_slice() else { panic!("one pipeline: {:?}", settings.kafka) };
    pipeline
}

fn entry(more: &str) -> String {
    format!("{EVENTS}{more}")
}

fn error_of(name: &str, more: &str) -> String {
    let errors = errors_of(name, &entry(more));
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].clone()
}

#[test]
fn little_has_to_be_said() {
    let settings = load_text("kafka-defaults", EVENTS).expect("valid settings");
    let pipeline = only(&settings);
    assert_eq!((pipeline.name.as_str(), pipeline.group.as_str()), ("windrow-events", "windrow-events"));
    assert_eq!((pipeline.database.as_str(), pipeline.table.as_str()), ("default", "events"));
    assert_eq!(pipeline.topics, KafkaTopics::Named(vec!["events".to_owned()]));
    assert_eq!((pipeline.start, pipeline.on_error), (KafkaStart::Earliest, KafkaOnError::DeadLetter));
    assert_eq!((pipeline.max_latency_ms, pipeline.max_memory_bytes), (5000, 80 << 20));
    assert_eq!((pipeline.session_timeout_ms, pipeline.metadata_refresh_ms), (10_000, 10_000));
    assert!(pipeline.exactly_once && !pipeline.of_flags && pipeline.tls.is_none() && pipeline.sasl.is_none());
    assert_eq!((pipeline.flush_interval_ms, pipeline.max_batch_rows, pipeline.fetch_max_wait_ms), (None, None, None));
    let duckdb = load_text("kafka-duckdb", &format!("backend = \"duckdb:x.db\"\n{EVENTS}")).expect("valid settings");
    assert_eq!(only(&duckdb).database, "main");
    assert!(load_text("kafka-none", "").expect("an empty file").kafka.is_empty());
}

#[test]
fn everything_can_be_said() {
    let text = r#"
[[kafka]]
name = "clicks"
brokers = ["a:1", "[::1]:2"]
topic_pattern = "clicks-.*"
group = "g"
table = "`my.db`.clicks"
format = "TabSeparated"
start = 2026-01-31T12:00:00Z
max_latency = "800ms"
on_error = "stop"
exactly_once = false
columns = { ts = "event.time", k = "_key", gone = "" }
format_settings = { input_format_skip_unknown_fields = false }
consumers = 2
flush_interval = 0.5
max_batch_rows = 1000
max_batch_bytes = "1MiB"
max_memory = "32MiB"
fetch_max_wait = "250ms"

[kafka.tls]

[kafka.sasl]
mechanism = "SCRAM-SHA-512"
user = "u"
password = "geheim"
"#;
    let settings = load_text("kafka-all", text).expect("valid settings");
    let pipeline = only(&settings);
    assert_eq!((pipeline.name.as_str(), pipeline.group.as_str()), ("clicks", "g"));
    assert_eq!((pipeline.database.as_str(), pipeline.table.as_str()), ("my.db", "clicks"));
    assert_eq!(pipeline.topics, KafkaTopics::Pattern("clicks-.*".to_owned()));
    assert_eq!((pipeline.format, pipeline.start), ("TabSeparated", KafkaStart::Time(1_769_860_800_000)));
    assert_eq!((pipeline.max_latency_ms, pipeline.flush_interval_ms), (800, Some(500)));
    let column = |column: &str, field: &str| KafkaColumn { column: column.to_owned(), field: field.to_owned() };
    assert_eq!(pipeline.columns, [column("gone", ""), column("k", "_key"), column("ts", "event.time")]);
    assert_eq!(pipeline.format_settings[0].value, "0");
    assert!(pipeline.tls.as_ref().is_some_and(|tls| tls.ca_file.is_none()), "the section alone turns it on");
    let Some(KafkaSasl::ScramSha512 { user, password }) = &pipeline.sasl else { panic!("{:?}", pipeline.sasl) };
    assert_eq!((user.as_str(), password.expose()), ("u", "geheim"));
    assert!(!format!("{settings:?}{}", settings.explain()).contains("geheim"));
    assert!(settings.explain().contains("kafka[1].max_latency"), "{}", settings.explain());
}

#[test]
fn tls_is_on_where_it_is_spoken_of() {
    let tls = |more: &str| only(&load_text("kafka-tls", &entry(more)).expect("valid settings")).tls.clone();
    assert!(tls("tls = true\n").is_some());
    assert!(tls("tls = false\n").is_none());
    assert!(tls("[kafka.tls]\nenabled = false\n").is_none());
    assert!(tls("[kafka.tls]\nca_file = \"ca.pem\"\n").is_some_and(|tls| tls.ca_file.is_some()));
    assert!(tls("tls = { certificate_file = \"c\", key_file = \"k\" }\n").is_some_and(|tls| tls.client.is_some()));
    assert_eq!(
        error_of("kafka-tls", "[kafka.tls]\nca_file = \"ca.pem\"\nenabled = false\n"),
        "[[kafka]] `windrow-events`: `tls.ca_file` is set, but `tls.enabled` is false; change one of them"
    );
    assert!(error_of("kafka-tls", "[kafka.tls]\nkey_file = \"k\"\n").contains("set both or neither"));
}

#[test]
fn a_token_comes_from_one_place() {
    let sasl = |more: &str| {
        let text = entry(&format!("[kafka.sasl]\nmechanism = \"OAUTHBEARER\"\n{more}"));
        load_text("kafka-token", &text)
            .map(|settings| only(&settings).sasl.clone())
            .map_err(|errors| errors.to_string())
    };
    let token = |more: &str| match sasl(more) {
        Ok(Some(KafkaSasl::OauthBearer { token, extensions })) => (token, extensions),
        other => panic!("{other:?}"),
    };
    assert!(matches!(token("token_file = \"t\"\n").0, KafkaToken::File(_)));
    assert!(matches!(token("token = \"t\"\n").0, KafkaToken::Given(_)));
    let (command, extensions) = token("token_command = [\"get\", \"it\"]\nextensions = { a = \"b\" }\n");
    assert!(matches!(command, KafkaToken::Command(words) if words.len() == 2));
    assert_eq!(extensions, [("a".to_owned(), "b".to_owned())]);
    assert!(sasl("")
        .expect_err("no token")
        .contains("needs one of `sasl.token`, `sasl.token_file` and `sasl.token_command`, and has none"));
    assert!(sasl("token = \"t\"\ntoken_file = \"f\"\n").is_err());
    assert!(sasl("token = \"t\"\nuser = \"u\"\n")
        .expect_err("a user")
        .contains("`sasl.user` is set, but OAUTHBEARER has no use for it"));
}

#[test]
fn what_does_not_fit_is_said() {
    let named = "[[kafka]] `windrow-events`: ";
    for (more, expected) in [
        ("topic_pattern = \"e.*\"\n", "`topics` and `topic_pattern` are both set; remove one of them"),
        ("schema_file = \"e.proto\"\n", "`schema_file` is set, but the format JSONEachRow has no use for it"),
        ("schema_registry = \"http://r\"\n", "`schema_registry` is set, but the format JSONEachRow has no use for it"),
        ("flush_interval = \"5s\"\n", "`flush_interval` (5s) leaves no time to store a batch within `max_latency` (5s); lower the first or raise the second"),
        ("max_batch_bytes = \"128MiB\"\n", "`max_batch_bytes` (128MiB) is more than `max_memory` (80MiB); lower the first or raise the second"),
        ("[kafka.sasl]\nuser = \"u\"\n", "`sasl.user` is set without `sasl.mechanism`; set that as well"),
        ("[kafka.sasl]\nmechanism = \"PLAIN\"\nuser = \"u\"\n", "PLAIN needs `sasl.password`"),
    ] {
        assert_eq!(error_of("kafka-fit", more), format!("{named}{expected}"), "{more}");
    }
    let head = "[[kafka]]\nbrokers = [\"b\"]\ntable = \"a.b.c\"\nname = \"n\"\n";
    assert_eq!(
        errors_of(
            "kafka-fit",
            &format!("{head}topics = [\"a b\", \"x\", \"x\"]\nformat = \"ProtobufSingle\"\nmessage = \"M\"\n")
        ),
        [
            "[[kafka]] `n`: the broker \"b\" is no address; write host:port",
            "[[kafka]] `n`: \"a b\" can't be a topic: their names have up to 249 letters, digits, dots, - and _",
            "[[kafka]] `n`: the topic `x` is named twice; remove one of them",
            "[[kafka]] `n`: the table \"a.b.c\" is no `database.table`; names with dots stand in backquotes",
            "[[kafka]] `n`: the format ProtobufSingle needs `schema_file`",
        ]
    );
    let registry = EVENTS.replace("JSONEachRow", "AvroConfluent");
    for (more, expected) in [
        ("", "the format AvroConfluent needs `schema_registry`"),
        (
            "schema_registry = \"http://u:geheim@r\"\n",
            "`schema_registry` holds a user; give it in `schema_registry_user` and `schema_registry_password`",
        ),
        ("schema_registry = \"r:8081\"\n", "`schema_registry` is no http:// or https:// URL"),
        (
            "schema_registry = \"http://r\"\nschema_registry_user = \"u\"\n",
            "`schema_registry_user` is set without `schema_registry_password`; set both or neither",
        ),
    ] {
        assert_eq!(errors_of("kafka-registry", &format!("{registry}{more}")), [format!("{named}{expected}")]);
    }
}

#[test]
fn keys_are_checked_and_the_nearest_is_named() {
    let text = "[[kafka]]\nbroker = [\"a:1\"]\nmax_latency = \"5 days\"\nstart = \"2026-01-01\"\nformat = \"JSON\"\n[kafka.sasl]\npasword = \"geheim\"\n";
    let errors = errors_of("kafka-keys", text);
    assert_eq!(errors[0], "unknown key `broker` in windrow.toml line 2; did you mean `brokers`?");
    assert!(errors[1].starts_with("`max_latency` in windrow.toml line 3: expected a time like `800ms`, `5s` or `1m`, or a number of seconds, from 1ms to 24h, got \"5 days\""), "{errors:?}");
    assert!(
        errors[2]
            .starts_with("`start` in windrow.toml line 4: expected `earliest`, `latest` or a moment with its zone"),
        "{errors:?}"
    );
    assert!(errors[3].starts_with("`format` in windrow.toml line 5: expected `JSONEachRow`, "), "{errors:?}");
    assert_eq!(errors[4], "unknown key `sasl.pasword` in windrow.toml line 7; did you mean `password`?");
    assert_eq!(
        errors[5..],
        [
            "the entry `[[kafka]]` in windrow.toml line 1 needs the key `brokers`",
            "the entry `[[kafka]]` in windrow.toml line 1 needs the key `table`"
        ]
    );
    assert_eq!(
        errors_of("kafka-single", "[kafka]\ntable = \"x\"\n")[0],
        "unknown key `kafka.table` in windrow.toml line 2; did you mean `[[kafka]]`?"
    );
}

#[test]
fn two_pipelines_are_told_apart() {
    let same = format!("{EVENTS}{EVENTS}");
    assert_eq!(
        errors_of("kafka-two", &same),
        ["[[kafka]] `windrow-events`: another entry has the same name; give one of them another `name`"]
    );
    let same_group = format!("{EVENTS}name = \"a\"\n{EVENTS}name = \"b\"\n");
    assert!(errors_of("kafka-two", &same_group)[0].contains("`a` has the same group"));
    let two = format!("{EVENTS}{EVENTS}name = \"b\"\ngroup = \"b\"\n");
    assert_eq!(load_text("kafka-two", &two).expect("valid settings").kafka.len(), 2);
}

#[test]
fn variables_override_the_pipeline_that_they_name() {
    let file = File::new("kafka-env", "[[kafka]]\nname = \"my-events\"\ntopics = [\"e\"]\ntable = \"t\"\nformat = \"CSV\"\n[kafka.sasl]\nmechanism = \"PLAIN\"\nuser = \"u\"\n");
    let env = [
        ("WINDROW_KAFKA_MY_EVENTS_BROKERS", "a:1, b:2"),
        ("WINDROW_KAFKA_MY_EVENTS_SASL_PASSWORD", "geheim"),
        ("WINDROW_KAFKA_MY_EVENTS_COLUMNS", "a=b.c, k=_key"),
    ];
    let settings = load(Some(&file), &env, &[]).expect("valid settings");
    assert_eq!(only(&settings).brokers, ["a:1", "b:2"]);
    assert_eq!(only(&settings).columns[0], KafkaColumn { column: "a".to_owned(), field: "b.c".to_owned() });
    assert!(matches!(&only(&settings).sasl, Some(KafkaSasl::Plain { password, .. }) if password.expose() == "geheim"));
    assert!(settings.explain().contains("variable WINDROW_KAFKA_MY_EVENTS_SASL_PASSWORD"));
    let wrong = [("WINDROW_KAFKA_MY_EVENTS_BROKER", "a:1")];
    let errors = load(Some(&file), &wrong, &[]).expect_err("no such key").to_string();
    assert!(errors.contains("did you mean `WINDROW_KAFKA_MY_EVENTS_BROKERS`?"), "{errors}");
}

#[test]
fn flags_make_a_pipeline_or_change_one() {
    let made = [
        ("kafka.brokers", "--brokers", "a:1"),
        ("kafka.topics", "--topics", "e,f"),
        ("kafka.table", "--table", "d.t"),
        ("kafka.format", "--format", "RowBinary"),
    ];
    let settings = load(None, &[], &made).expect("valid settings");
    let pipeline = only(&settings);
    assert!(pipeline.of_flags);
    assert_eq!((pipeline.name.as_str(), pipeline.database.as_str(), pipeline.format), ("windrow-t", "d", "RowBinary"));
    assert_eq!(pipeline.topics, KafkaTopics::Named(vec!["e".to_owned(), "f".to_owned()]));
    let env = [("WINDROW_KAFKA_WINDROW_T_SASL_PASSWORD", "geheim"), ("WINDROW_KAFKA_WINDROW_T_TABLE", "d.other")];
    let with_login = [("kafka.sasl.mechanism", "--set", "PLAIN"), ("kafka.sasl.user", "--set", "u")];
    let settings = load(None, &env, &[&made[..], &with_login].concat()).expect("valid settings");
    assert!(matches!(&only(&settings).sasl, Some(KafkaSasl::Plain { password, .. }) if password.expose() == "geheim"));
    assert_eq!(only(&settings).table, "t", "flags win");
    let seen = [("kafka.sasl.password", "--set", "geheim")];
    let errors = load(None, &[], &[&made[..], &seen].concat()).expect_err("a secret in an argument").to_string();
    assert!(errors.contains("everybody can see") && !errors.contains("geheim"), "{errors}");
    let file = File::new("kafka-flags", EVENTS);
    let changed = [("kafka.name", "NAME", "windrow-events"), ("kafka.max_latency", "--max-latency", "1m")];
    let settings = load(Some(&file), &[], &changed).expect("valid settings");
    assert!(only(&settings).of_flags && only(&settings).max_latency_ms == 60_000);
    let errors = load(Some(&file), &[], &[("kafka.name", "NAME", "event")]).expect_err("no such pipeline").to_string();
    assert_eq!(errors, "no [[kafka]] entry is called `event`; there are: windrow-events");
    let errors = load(None, &[], &made[..2]).expect_err("lacks keys").to_string();
    let lacking = "the [[kafka]] entry that begins with flag --brokers needs the key";
    assert_eq!(errors, format!("{lacking} `table`\n{lacking} `format`"));
}
