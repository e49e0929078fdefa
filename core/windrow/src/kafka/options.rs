//! Turns a pipeline of the settings into the options of the pipelines' crate.

use std::time::Duration;

use windrow_kafka::consumer::TopicPattern;
use windrow_kafka::pipeline::{FormatOptions, OnError, Overrides, PipelineOptions, RegistryOptions, StartAt, Topics};
use windrow_kafka::{ClientOptions, Sasl, ScramHash, TlsOptions, TokenSource};
use windrow_settings::{
    Backend, KafkaOnError, KafkaSasl, KafkaSettings, KafkaStart, KafkaTls, KafkaToken, KafkaTopics, SchemaRegistry,
};

/// Returns the options of a pipeline. Fails where the pattern of topics is no regular expression.
pub(crate) fn pipeline_options(of: &KafkaSettings, backend: &Backend) -> Result<PipelineOptions, String> {
    if let KafkaTopics::Pattern(pattern) = &of.topics {
        TopicPattern::new(pattern).map_err(|error| format!("[[kafka]] `{}`: {error}", of.name))?;
    }
    Ok(PipelineOptions {
        name: of.name.clone(),
        client: client_options(of),
        topics: match &of.topics {
            KafkaTopics::Named(names) => Topics::Named(names.clone()),
            KafkaTopics::Pattern(pattern) => Topics::Pattern(pattern.clone()),
        },
        group: of.group.clone(),
        database: database(of, backend),
        table: of.table.clone(),
        format: FormatOptions {
            name: of.format.to_owned(),
            schema_file: of.schema_file.clone(),
            message: of.message.clone(),
            registry: of.schema_registry.as_ref().map(registry_options),
            settings: of.format_settings.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
        },
        columns: of.columns.iter().map(|it| (it.column.clone(), it.field.clone())).collect(),
        start: match of.start {
            KafkaStart::Earliest => StartAt::Earliest,
            KafkaStart::Latest => StartAt::Latest,
            KafkaStart::Time(ms) => StartAt::Time(ms),
        },
        max_latency: Duration::from_millis(of.max_latency_ms),
        on_error: match of.on_error {
            KafkaOnError::DeadLetter => OnError::DeadLetter,
            KafkaOnError::Skip => OnError::Skip,
            KafkaOnError::Stop => OnError::Stop,
        },
        exactly_once: of.exactly_once,
        session_timeout: Duration::from_millis(of.session_timeout_ms),
        metadata_refresh: Duration::from_millis(of.metadata_refresh_ms),
        overrides: Overrides {
            consumers: Some(of.consumers),
            flush_interval: of.flush_interval_ms.map(Duration::from_millis),
            max_batch_rows: of.max_batch_rows,
            max_batch_bytes: of.max_batch_bytes,
            max_memory_bytes: Some(of.max_memory_bytes),
            fetch_min_bytes: of.fetch_min_bytes.map(at_most_u32),
            fetch_max_bytes: of.fetch_max_bytes.map(at_most_u32),
            fetch_max_wait: of.fetch_max_wait_ms.map(Duration::from_millis),
        },
    })
}

/// Returns the database's name. DuckDB's schema `main` is the database `default` to everybody here: a table
/// is to be known by one name.
fn database(of: &KafkaSettings, backend: &Backend) -> String {
    match backend {
        Backend::DuckDb(_) if of.database == "main" => "default".to_owned(),
        _ => of.database.clone(),
    }
}

/// Converts a number. The settings allow no more than fits.
fn at_most_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn client_options(of: &KafkaSettings) -> ClientOptions {
    let mut options = ClientOptions::new(of.brokers.clone());
    options.tls = of.tls.as_ref().map(tls_options);
    options.sasl = of.sasl.as_ref().map(sasl);
    options
}

fn tls_options(of: &KafkaTls) -> TlsOptions {
    TlsOptions {
        ca_file: of.ca_file.clone(),
        certificate_file: of.client.as_ref().map(|client| client.certificate_file.clone()),
        key_file: of.client.as_ref().map(|client| client.key_file.clone()),
    }
}

fn sasl(of: &KafkaSasl) -> Sasl {
    let scram = |hash, user: &String, password: &windrow_settings::Secret| Sasl::Scram {
        hash,
        user: user.clone(),
        password: password.expose().to_owned(),
    };
    match of {
        KafkaSasl::Plain { user, password } => {
            Sasl::Plain { user: user.clone(), password: password.expose().to_owned() }
        }
        KafkaSasl::ScramSha256 { user, password } => scram(ScramHash::Sha256, user, password),
        KafkaSasl::ScramSha512 { user, password } => scram(ScramHash::Sha512, user, password),
        KafkaSasl::OauthBearer { token, extensions } => Sasl::OauthBearer {
            token: match token {
                KafkaToken::Given(token) => TokenSource::Text(token.expose().to_owned()),
                KafkaToken::File(path) => TokenSource::File(path.clone()),
                KafkaToken::Command(words) => TokenSource::Command(words.clone()),
            },
            extensions: extensions.clone(),
        },
    }
}

fn registry_options(of: &SchemaRegistry) -> RegistryOptions {
    RegistryOptions {
        url: of.url.clone(),
        user: of.login.as_ref().map(|login| login.user.clone()),
        password: of.login.as_ref().map(|login| login.password.expose().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_settings::{Flag, Settings, Sources};

    fn settings(flags: &[(&str, &str)]) -> Settings {
        let made = [("brokers", "b:1"), ("table", "t"), ("format", "CSV")];
        let flag = |(key, value): &(&str, &str)| Flag {
            path: if key.contains("kafka") || *key == "backend" { (*key).to_owned() } else { format!("kafka.{key}") },
            name: format!("--{key}"),
            value: (*value).to_owned(),
        };
        let env = [("WINDROW_KAFKA_WINDROW_T_SASL_PASSWORD".to_owned(), "geheim".to_owned())].into_iter();
        let flags = made.iter().chain(flags).map(flag).collect();
        let sources = Sources { config_path: None, env, flags, default_backend: None };
        Settings::load(sources).expect("valid settings")
    }

    #[test]
    fn everything_is_handed_on_and_no_secret_is_shown() {
        let settings = settings(&[
            ("topics", "a,b"),
            ("start", "1970-01-01T00:00:01Z"),
            ("max_latency", "800ms"),
            ("tls.enabled", "true"),
            ("sasl.mechanism", "SCRAM-SHA-512"),
            ("sasl.user", "u"),
            ("fetch_max_bytes", "1MiB"),
        ]);
        let options = pipeline_options(&settings.kafka[0], &settings.backend).expect("good options");
        assert_eq!((options.start, options.max_latency), (StartAt::Time(1000), Duration::from_millis(800)));
        assert_eq!((options.database.as_str(), options.overrides.fetch_max_bytes), ("default", Some(1 << 20)));
        assert!(options.client.tls.is_some());
        let Some(Sasl::Scram { hash: ScramHash::Sha512, password, .. }) = &options.client.sasl else {
            panic!("{:?}", options.client.sasl)
        };
        assert_eq!(password, "geheim");
        assert!(!format!("{options:?}").contains("geheim"), "{options:?}");
    }

    #[test]
    fn a_table_of_duckdb_has_one_name() {
        let settings = settings(&[
            ("backend", "duckdb::memory:"),
            ("topics", "a"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.user", "u"),
        ]);
        let options = pipeline_options(&settings.kafka[0], &settings.backend).expect("good options");
        assert_eq!(options.database, "default");
    }

    #[test]
    fn a_pattern_has_to_be_one() {
        let settings = settings(&[("topic_pattern", "("), ("sasl.mechanism", "PLAIN"), ("sasl.user", "u")]);
        let error = pipeline_options(&settings.kafka[0], &settings.backend).expect_err("no pattern");
        assert!(error.contains("[[kafka]] `windrow-t`"), "{error}");
    }
}
