"""A pipeline from Kafka into PostgreSQL: each message is a row once, whoever is killed."""

from __future__ import annotations

from pathlib import Path

from harness.adbc import AdbcGateway, counted
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_numbers import numbered
from harness.kafka_topics import Topics
from harness.pipelines import pipeline, pipelines_toml
from harness.postgres import Postgres

PARTITIONS, EACH = 4, 500


def test_messages_are_rows_once(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker")
    postgres = Postgres(tmp_path / "postgres")
    topics = Topics(broker)
    topics.create("numbers", PARTITIONS)
    postgres.sql("CREATE TABLE events (id bigint NOT NULL, text text NOT NULL)")
    config = pipelines_toml(pipeline(broker, "events", "numbers"))
    gateway = AdbcGateway(tmp_path / "gateway", postgres.url, config)
    sent = 0
    try:
        for kill in (gateway.kill, postgres.kill, gateway.kill):
            topics.send("numbers", numbered(sent, sent + EACH, PARTITIONS))
            eventually(lambda: counted(gateway.http, "events") > sent, "the pipeline stores")
            sent += EACH
            kill()
            (postgres if kill == postgres.kill else gateway).start()
            eventually(gateway.http.answers, "both are back")
        eventually(lambda: counted(gateway.http, "events") >= sent, "all messages are stored")
        assert gateway.http.sql("SELECT count(*), count(DISTINCT id), max(id) FROM events") == f"{sent}\t{sent}\t{sent - 1}"
    finally:
        gateway.stop()
        postgres.stop()
        broker.stop()
