//! The embedded ClickHouse as the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use windrow_clickhouse::{Call, Client, ClientOptions, Credentials, Endpoint};
use windrow_embedded::{Embedded, EmbeddedOptions};
use windrow_engine::sink::ClickHouseSink;

use crate::suite::{Kind, Store};

pub struct InClickHouse {
    _engine: Embedded,
    client: Arc<Client>,
    sink: Arc<ClickHouseSink>,
}

fn client(port: u16, user: &str, password: &str) -> Arc<Client> {
    let credentials = Credentials { user: user.into(), password: password.into() };
    let endpoint = Endpoint { host: "127.0.0.1".into(), port, native_port: None, tls: false, credentials };
    Arc::new(Client::new(endpoint, ClientOptions::default()).expect("a client"))
}

impl InClickHouse {
    pub async fn new(folder: &Path) -> InClickHouse {
        let engine = Embedded::start(EmbeddedOptions::new(folder)).await.expect("the engine starts");
        let endpoint = engine.endpoint();
        let client = client(endpoint.http_port, &endpoint.user, &endpoint.password);
        InClickHouse { sink: Arc::new(ClickHouseSink::new(client.clone(), None)), client, _engine: engine }
    }

    async fn sql(&self, statement: &str) -> String {
        let call = Call::new(&self.client.endpoint().credentials, statement);
        self.client.call(call).await.expect(statement).text().trim_end().to_owned()
    }
}

impl Store for InClickHouse {
    type Sink = ClickHouseSink;

    fn name(&self) -> &'static str {
        "ClickHouse"
    }

    fn sink(&self) -> Arc<ClickHouseSink> {
        self.sink.clone()
    }

    fn away(&self) -> ClickHouseSink {
        // A port that nobody listens on, nor is ever given.
        ClickHouseSink::new(client(1, "default", ""), None)
    }

    fn credentials(&self) -> Credentials {
        self.client.endpoint().credentials.clone()
    }

    async fn create(&self, table: &str, kind: Kind) {
        let columns = match kind {
            Kind::Plain => "a Int64",
            Kind::Guarded => "a Int64, CONSTRAINT small CHECK a < 1000",
            Kind::Defaults => "a Int64, b String DEFAULT 'x'",
        };
        self.sql(&format!(
            "CREATE TABLE default.{table} ({columns}) ENGINE = MergeTree ORDER BY a \
             SETTINGS non_replicated_deduplication_window = 1000"
        ))
        .await;
    }

    async fn values(&self, table: &str) -> BTreeMap<i64, u64> {
        let rows = self.sql(&format!("SELECT a, count() FROM default.{table} GROUP BY a FORMAT TSV")).await;
        let pair = |line: &str| {
            let (value, count) = line.split_once('\t').expect("two columns");
            (value.parse().expect("a number"), count.parse().expect("a number"))
        };
        rows.lines().map(pair).collect()
    }

    async fn defaults(&self, table: &str) -> u64 {
        self.sql(&format!("SELECT countIf(b = 'x') FROM default.{table}")).await.parse().expect("a number")
    }
}
