//! Loading as the binary does it: file, variables and flags together.

use std::fs;
use std::path::Path;

use crate::common::{errors_of, load, load_text, File};
use windrow_settings::{
    AckRule, AsyncInsertRule, Backend, DuckDbPlace, Flag, FlushPolicy, LogFormat, Origin, ReplicaChoice, Settings,
    Sources,
};

#[test]
fn defaults_are_those_of_the_documentation() {
    let settings = load(None, &[("PATH", "/bin"), ("WINDROWS", "1")], &[]).expect("the defaults load");
    assert_eq!(settings.backend, Backend::Embedded);
    assert_eq!(settings.data_dir, Path::new("./windrow-data"));
    assert_eq!(settings.http.listen.to_string(), "127.0.0.1:8123");
    assert_eq!(settings.admin.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.log.format, LogFormat::Text);
    assert_eq!(settings.http.tls, None);
    assert_eq!(settings.http.max_body_bytes_gathered, 10_485_760);
    assert_eq!(settings.gather.flush_policy, FlushPolicy::Balanced);
    assert_eq!(settings.gather.async_insert_busy_timeout_max_ms, 200);
    assert_eq!(settings.gather.async_insert_max_query_number, 450);
    assert!(settings.gather.wait_for_async_insert);
    assert!(settings.gather.max_buffer_bytes >= 64 << 20);
    assert_eq!(settings.embedded.default_password, None);
    assert_eq!(settings.origin("http.listen"), Some(&Origin::Default));
    assert_eq!(settings.origin("http.nothing"), None);
}

#[test]
fn replicas_are_a_list_a_text_or_a_section() {
    let shown = "http://ann:(set)@a:8123,http://ann:(set)@b:8123";
    for text in [
        "backend = \"http://ann:p@a:8123,http://b:8123\"\n",
        "backend = [\"http://ann:p@a\", \"http://b\"]\n",
        "[backend]\nreplicas = [\"http://ann:p@a\", \"http://ann:p@b\"]\n",
    ] {
        let settings = load_text("replicas", text).expect(text);
        assert_eq!(settings.backend.to_string(), shown, "{text}");
        assert_eq!(settings.backend_choice, ReplicaChoice::InOrder);
    }
    let text = "[backend]\nreplicas = [\"http://a\", \"http://b\"]\nchoice = \"least_loaded\"\n";
    let settings = load_text("replicas", text).expect("valid settings");
    assert_eq!(settings.backend_choice, ReplicaChoice::LeastLoaded);
    let file = File::new("replicas", "[backend]\nreplicas = [\"http://a\"]\n");
    let flags = [("backend", "--backend", "http://c,http://d")];
    let over = load(Some(&file), &[], &flags).expect("valid settings");
    assert_eq!(
        over.backend.to_string(),
        "http://default@c:8123,http://default@d:8123",
        "one setting, however it is named"
    );
}

const GATEWAYS: &str =
    "backend = \"http://db\"\n[cluster]\ngateways = [\"http://A\", \"https://b:1\"]\nself = \"https://b:1\"\n";

#[test]
fn gateways_are_a_list_or_a_text_and_one_of_them_is_this_one() {
    let given = format!("{GATEWAYS}secret = \"geheim-geheim-geheim\"\n");
    let cluster = load_text("gateways", &given).expect("valid settings").cluster.expect("a cluster");
    assert_eq!((cluster.gateways.as_slice(), cluster.own), (&["http://a:8123".into(), "https://b:1".into()][..], 1));
    assert!(cluster.stretch_holds);
    let variables = [
        ("WINDROW_CLUSTER_GATEWAYS", "http://a, http://b"),
        ("WINDROW_CLUSTER_SELF", "http://a"),
        ("WINDROW_CLUSTER_SECRET_FILE", "/run/secret"),
        ("WINDROW_BACKEND", "http://db"),
    ];
    let cluster = load(None, &variables, &[]).expect("valid settings").cluster.expect("a cluster");
    assert_eq!((cluster.gateways.len(), cluster.own), (2, 0));
    assert!(load_text("gateways", "").expect("valid settings").cluster.is_none());
}

#[test]
fn what_gateways_lack_is_said() {
    for (more, needle) in [
        ("", "a secret that they share"),
        ("secret = \"short\"\n", "16 to 1024"),
        ("secret = \"geheim-geheim-geheim\"\nsecret_file = \"x\"\n", "both set"),
    ] {
        let errors = load_text("gateways", &format!("{GATEWAYS}{more}")).expect_err(more).to_string();
        assert!(errors.contains(needle) && !errors.contains("short\""), "{errors}");
    }
    let secret = "secret = \"geheim-geheim-geheim\"\n";
    for (text, needle) in [
        (format!("{GATEWAYS}{secret}").replace("backend = \"http://db\"", ""), "in front of one ClickHouse server"),
        (format!("{GATEWAYS}{secret}").replace("self = \"https://b:1\"", ""), "`cluster.self` is not"),
        (format!("{GATEWAYS}{secret}").replace("self = \"https://b:1\"", "self = \"http://c\""), "which is none of"),
        (format!("{GATEWAYS}{secret}").replace("http://A\"", "http://A\", \"http://a:8123\""), "twice"),
        (format!("[cluster]\n{secret}"), "`cluster.gateways` is not"),
        (format!("{GATEWAYS}{secret}").replace("http://A", "a:8123"), "http://windrow-0.windrow:8123"),
    ] {
        let errors = load_text("gateways", &text).expect_err(needle).to_string();
        assert!(errors.contains(needle) && !errors.contains("geheim"), "{errors}");
    }
}

#[test]
fn duckdb_appends_and_flight_sql_have_settings() {
    let text = "backend = \"duckdb:x.db\"\n[duckdb]\nmemory_limit_bytes = \"1GiB\"\nthreads = 2\n[append]\nwindow_bytes = \"1MiB\"\n\
                [flight]\nlisten = \"\"\n[[duckdb.users]]\nname = \"ann\"\npassword = \"p\"\nreadonly = true\n";
    let settings = load_text("duckdb", text).expect("valid settings");
    assert_eq!(settings.backend, Backend::DuckDb(DuckDbPlace::File("x.db".into())));
    assert_eq!((settings.duckdb.memory_limit_bytes, settings.duckdb.threads), (Some(1 << 30), Some(2)));
    assert_eq!((settings.append.window_bytes, settings.append.max_memory_bytes), (1 << 20, 256 << 20));
    assert_eq!(settings.flight.listen, None);
    let user = &settings.duckdb.users[0];
    assert_eq!((user.name.as_str(), user.password.expose(), user.readonly), ("ann", "p", true));
    let defaults = load(None, &[], &[]).expect("the defaults load");
    assert_eq!(defaults.flight.listen.map(|address| address.port()), Some(8815));
    let off = load(None, &[("WINDROW_FLIGHT_LISTEN", "")], &[]).expect("an empty variable is a value");
    assert_eq!(off.flight.listen, None);
}

#[test]
fn duckdb_needs_a_password_where_others_can_reach_it() {
    let open = "backend = \"duckdb:x.db\"\nflight.listen = \"0.0.0.0:8815\"\n[[duckdb.users]]\nname = \"default\"\npassword = \"\"\n";
    assert_eq!(
        errors_of("open", open),
        [
            "Flight SQL on 0.0.0.0:8815 can be reached by others (windrow.toml:2), and the user `default` has no password; set `duckdb.default_password`, or listen on 127.0.0.1",
            "[[duckdb.users]] can't redefine `default`; choose another name",
            "the [[duckdb.users]] entry `default` has an empty `password`; give it one",
        ]
    );
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let text = "[http]\nlisten = \"127.0.0.1:1\"\nmax_connections = 5\n[admin]\nlisten = \"127.0.0.1:4\"\n";
    let file = File::new("order", text);
    let env = [("WINDROW_HTTP_LISTEN", "127.0.0.1:2"), ("WINDROW_ADMIN_LISTEN", "localhost:5")];
    let settings = load(Some(&file), &env, &[("http.listen", "--http", "127.0.0.1:3")]).expect("valid settings");
    assert_eq!(settings.http.listen.port(), 3);
    assert_eq!(settings.admin.listen.port(), 5);
    assert_eq!(settings.http.max_connections, 5);
    assert_eq!(settings.origin("http.listen"), Some(&Origin::Flag { name: "--http".into() }));
    assert_eq!(settings.origin("admin.listen"), Some(&Origin::Variable { name: "WINDROW_ADMIN_LISTEN".into() }));
    let path = file.0.display().to_string();
    assert_eq!(settings.origin("http.max_connections"), Some(&Origin::File { path, line: 3 }));
}

#[test]
fn the_file_may_be_named_by_a_variable() {
    let file = File::new("variable", "log.format = \"json\"\n");
    let path = file.0.display().to_string();
    let settings = load(None, &[("WINDROW_CONFIG", &path)], &[]).expect("valid settings");
    assert_eq!(settings.log.format, LogFormat::Json);
    let missing = load(None, &[("WINDROW_CONFIG", "/nonexistent/windrow.toml")], &[]).expect_err("no such file");
    assert!(missing.to_string().starts_with("cannot read the settings file /nonexistent/windrow.toml: "), "{missing}");
}

#[test]
fn all_errors_come_at_once_and_say_what_to_do() {
    let text = "backend = \"ftp://x\"\n[gather]\nmax_bufer_bytes = 5\nflush_policy = \"blanced\"\n\n[http]\nheaders_read_timeout_ms = \"3s\"\nmax_buffer_bytes = 3\ncolour = 1\n[gatherer]\nmax_table_share = 1\n";
    let expected = [
        "`backend` in windrow.toml line 1: this kind of backend is not known; use \"embedded\", \"http[s]://user:password@host:port\", \"tcp[s]://user:password@host:port\", \"duckdb:///path/file.db\" or \"adbc:postgresql://user@host/database\"",
        "unknown key `gather.max_bufer_bytes` in windrow.toml line 3; did you mean `max_buffer_bytes`?",
        "`gather.flush_policy` in windrow.toml line 4: expected `balanced`, `adaptive` or `fixed`, got \"blanced\"",
        "`http.headers_read_timeout_ms` in windrow.toml line 7: expected milliseconds as a whole number from 1 to 86400000, got \"3s\"",
        "unknown key `http.max_buffer_bytes` in windrow.toml line 8; did you mean `gather.max_buffer_bytes`?",
        "unknown key `http.colour` in windrow.toml line 9; `windrow config` lists the known ones",
        "unknown key `gatherer.max_table_share` in windrow.toml line 11; did you mean `gather.max_table_share`?",
    ];
    assert_eq!(errors_of("all", text), expected);
}

#[test]
fn variables_and_flags_are_checked_too() {
    let env = [
        ("WINDROW_HTPP_LISTEN", "x"),
        ("WINDROW_HTTP_MAX_CONNECTIONS", "many"),
        ("WINDROW_SERVICE_HOST", "10.0.0.1"),
        ("WINDROW_PORT", "tcp://10.0.0.1:8123"),
    ];
    let flags = [("admin.listen", "--admin", "8080"), ("admin.lissen", "--set", "x")];
    let errors = load(None, &env, &flags).expect_err("refused settings").to_string();
    let expected = [
        "unknown key variable WINDROW_HTPP_LISTEN; did you mean `WINDROW_HTTP_LISTEN`?",
        "variable WINDROW_HTTP_MAX_CONNECTIONS: expected a whole number from 1 to 1000000, got \"many\"",
        "flag --admin: expected an address and port such as `127.0.0.1:8123` or `[::]:8123`, got \"8080\"",
        "unknown key `admin.lissen` in flag --set; did you mean `listen`?",
    ];
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_broken_file_names_the_line() {
    let errors = errors_of("syntax", "[http]\nlisten = \"127.0.0.1:1\nmax_connections = 3\n");
    assert!(errors[0].starts_with("windrow.toml line 2 is not valid TOML: "), "{errors:?}");
}

#[test]
fn ports_open_to_others_need_secrets() {
    let open = "[http]\nlisten = \"0.0.0.0:8123\"\n[admin]\nlisten = \"[::]:8080\"\n";
    let errors = errors_of("open", open);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("`admin.token`") && errors[1].contains("`embedded.default_password`"), "{errors:?}");
    let closed = format!("{open}token = \"geheim1\"\n[embedded]\ndefault_password = \"geheim2\"\n");
    let settings = load_text("closed", &closed).expect("secrets are given");
    assert_eq!(settings.admin.token.as_ref().map(|token| token.expose()), Some("geheim1"));
    // A server of one's own knows its users itself.
    load_text("server", "backend = \"http://db:8123\"\n[http]\nlisten = \"0.0.0.0:1\"\n").expect("no password needed");
    // An empty secret is none.
    assert_eq!(errors_of("empty", "[admin]\nlisten = \"0.0.0.0:1\"\ntoken = \"\"\n").len(), 1);
}

#[test]
fn tls_needs_both_files() {
    let errors = errors_of("tls", "[http]\ntls_key = \"k.pem\"\n");
    assert!(errors[0].contains("`http.tls_certificate` is not set"), "{errors:?}");
    let settings = load_text("tls2", "[http]\ntls_key = \"k.pem\"\ntls_certificate = \"c.pem\"\n").expect("both files");
    assert_eq!(settings.http.tls.expect("both files").key, Path::new("k.pem"));
    let errors = errors_of("tls3", "backend = \"http://x\"\n[backend_tls]\nca_file = \"ca.pem\"\n");
    assert!(errors[0].contains("no https:// URL"), "{errors:?}");
}

#[test]
fn later_table_entries_override_key_by_key() {
    let text = r#"
[[tables]]
async_insert = "always"
ack = "stored"
busy_timeout_max_ms = 1000

[[tables]]
database = "metrics"
table = "cpu_*"
busy_timeout_max_ms = 5000
max_data_size = "1MiB"
flush_policy = "fixed"

[[tables]]
user = "etl"
async_insert = "never"
"#;
    let settings = load_text("rules", text).expect("valid rules");
    let cpu = settings.table_rules("metrics", "cpu_load", "ann");
    assert_eq!(cpu.async_insert, AsyncInsertRule::Always);
    assert_eq!(cpu.ack, AckRule::Stored);
    assert_eq!(cpu.busy_timeout_max_ms, Some(5000));
    assert_eq!(cpu.max_data_size_bytes, Some(1 << 20));
    assert_eq!(cpu.flush_policy, Some(FlushPolicy::Fixed));
    assert_eq!(cpu.max_query_number, None);
    let other = settings.table_rules("default", "cpu_load", "etl");
    assert_eq!((other.async_insert, other.busy_timeout_max_ms), (AsyncInsertRule::Never, Some(1000)));
    assert_eq!(load_text("none", "").expect("an empty file").table_rules("a", "b", "c"), Default::default());
}

#[test]
fn entries_are_checked_like_the_rest() {
    let text = r#"
[[tables]]
tabel = "x"
ack = "disc"

[[embedded.users]]
name = "ann"
password = 12

[[embedded.users]]
password = "p"

[[embedded.user]]
name = "x"
"#;
    let errors = errors_of("entries", text);
    let expected = [
        "unknown key `tabel` in windrow.toml line 3; did you mean `table`?",
        "`ack` in windrow.toml line 4: expected `client`, `memory`, `disk` or `stored`, got \"disc\"",
        "`password` in windrow.toml line 8: expected a text",
        "the entry `[[embedded.users]]` in windrow.toml line 10 needs the key `name`",
        "unknown key `[[embedded.user]]` in windrow.toml line 13; did you mean `[[embedded.users]]`?",
    ];
    assert_eq!(errors, expected);
    let errors = errors_of("single", "[tables]\ntable = \"x\"\n");
    assert_eq!(errors, ["unknown key `tables.table` in windrow.toml line 2; did you mean `[[tables]]`?"]);
    let errors = errors_of("users", "[[embedded.users]]\nname = \"default\"\npassword = \"\"\n");
    assert!(errors[0].contains("choose another name") && errors[1].contains("empty `password`"), "{errors:?}");
}

#[test]
fn embedded_users_carry_grants_and_settings() {
    let text = "[[embedded.users]]\nname = \"ann\"\npassword = \"p\"\ngrants = [\"GRANT SELECT ON default.*\"]\nsettings = { max_threads = 4, readonly = true, date_time_input_format = \"basic\" }\n[[embedded.users]]\nname = \"bob\"\npassword = \"q\"\n";
    let settings = load_text("grants", text).expect("valid users");
    let [ann, bob] = settings.embedded.users.as_slice() else { panic!("two users") };
    assert_eq!(ann.grants.as_deref(), Some(["GRANT SELECT ON default.*".to_owned()].as_slice()));
    let pairs: Vec<_> = ann.settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str())).collect();
    assert_eq!(pairs, [("date_time_input_format", "basic"), ("max_threads", "4"), ("readonly", "1")]);
    assert_eq!((bob.grants.as_deref(), bob.settings.len()), (None, 0));
}

#[test]
fn what_is_kept_is_bounded() {
    let defaults = load_text("kept", "").expect("an empty file");
    assert_eq!((defaults.journal.segment_bytes, defaults.journal.max_bytes), (64 << 20, 4 << 30));
    assert_eq!((defaults.gather.retry_for_ms, defaults.dead_letters.max_age_ms), (None, None), "0 is for ever");
    let text = "[gather]\nretry_for_ms = 1000\n[journal]\nsegment_bytes = \"256KiB\"\nmax_bytes = \"4MiB\"\n[dead_letters]\nmax_age_ms = 604800000\n";
    let settings = load_text("kept", text).expect("valid settings");
    assert_eq!((settings.gather.retry_for_ms, settings.dead_letters.max_age_ms), (Some(1000), Some(604_800_000)));
    assert_eq!(settings.journal.max_bytes, 4 << 20);
    let errors = errors_of("kept", "[journal]\nmax_bytes = \"1023MiB\"\n");
    assert!(errors[0].contains("at least 16 files of `journal.segment_bytes` (64MiB)"), "{errors:?}");
}

#[test]
fn windows_are_managed_where_the_tables_are_windrows_own() {
    let managed = |text: &str| load_text("windows", text).expect("valid settings").manage_deduplication_window;
    assert!(managed(""));
    assert!(!managed("manage_deduplication_window = false\n"));
    assert!(!managed("backend = \"http://db:8123\"\n"));
    assert!(managed("backend = \"http://db:8123\"\nmanage_deduplication_window = true\n"));
}

#[test]
fn secrets_are_never_shown() {
    let text = "backend = \"https://ann:geheim0@db\"\n[admin]\ntoken = \"geheim1\"\n[embedded]\ndefault_password = \"geheim2\"\n[[embedded.users]]\nname = \"u\"\npassword = \"geheim3\"\nsettings = { s = \"geheim4\" }\n[cluster]\ngateways = \"http://a\"\nself = \"http://a\"\nsecret = \"geheim5-and-more-of-it\"\n";
    let settings = load_text("secrets", text).expect("valid settings");
    assert!(!settings.explain().contains("geheim"), "{}", settings.explain());
    let debug = format!("{settings:?}");
    assert!(
        !["geheim0", "geheim1", "geheim2", "geheim3", "geheim5"].iter().any(|secret| debug.contains(secret)),
        "{debug}"
    );
    assert!(settings.explain().contains("https://ann:(set)@db:8443"));
}

#[test]
fn explain_lists_every_setting_with_its_source() {
    let file = File::new("explain", "[gather]\nmax_buffer_bytes = \"64MiB\"\n[[tables]]\ntable = \"x\"\n");
    let settings = load(Some(&file), &[("WINDROW_LOG_LEVEL", "debug")], &[]).expect("valid settings");
    let path = file.0.display().to_string();
    let squeezed: Vec<String> =
        settings.explain().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "backend embedded default".to_owned(),
        "log.level \"debug\" variable WINDROW_LOG_LEVEL".to_owned(),
        "admin.token (not set) default".to_owned(),
        format!("gather.max_buffer_bytes 64MiB {path}:2"),
        format!("tables[1].table \"x\" {path}:4"),
    ] {
        assert!(squeezed.contains(&line), "{line} is not in\n{}", settings.explain());
    }
}

#[test]
fn another_default_backend_holds_until_something_else_is_said() {
    let load = |value: Option<&str>| {
        let flag = |value: &str| Flag { path: "backend".into(), name: "--backend".into(), value: value.into() };
        let flags = value.map(flag).into_iter().collect();
        let default_backend = Some("duckdb:///x/rows.duckdb".to_owned());
        Settings::load(Sources { config_path: None, env: std::iter::empty(), flags, default_backend })
    };
    let settings = load(None).expect("valid");
    assert_eq!(settings.backend, Backend::DuckDb(DuckDbPlace::File("/x/rows.duckdb".into())));
    assert_eq!(settings.origin("backend"), Some(&Origin::Default));
    assert_eq!(load(Some("embedded")).expect("valid").backend, Backend::Embedded);
}

#[test]
fn the_example_in_the_project_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../windrow.example.toml");
    let sources =
        Sources { config_path: Some(path), env: std::iter::empty(), flags: Vec::new(), default_backend: None };
    let settings = Settings::load(sources).expect("the example is valid");
    assert_eq!(settings.table_rules("default", "audit_log", "x").ack, AckRule::Stored);
}

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = fs::read_to_string(path).expect("docs/settings.md is part of the project");
    assert!(
        page == windrow_settings::reference_markdown(),
        "docs/settings.md is old; run: cargo run --release -p windrow-settings --example reference > docs/settings.md"
    );
}

#[test]
fn no_mutation_of_a_file_panics() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../windrow.example.toml");
    let text = fs::read_to_string(example).expect("the example is part of the project").replace("# ", "");
    let seed = 42;
    let mut random = fastrand::Rng::with_seed(seed);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('=') || line.starts_with('[')).collect();
    let mut accepted = 0;
    for round in 0..2_000 {
        let mut bytes = lines.join("\n").into_bytes();
        for _ in 0..random.usize(..3) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(b' '..b'~');
        }
        bytes.truncate(random.usize(..=bytes.len()));
        match load_text("mutated", &String::from_utf8_lossy(&bytes)) {
            Ok(settings) => accepted += usize::from(!settings.explain().is_empty()),
            Err(errors) => assert!(!errors.0.is_empty(), "seed {seed} round {round}"),
        }
    }
    assert!(accepted > 0, "seed {seed}: the mutations leave nothing valid, so nothing behind the parser was tried");
}
