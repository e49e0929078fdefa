"""docs/kafka-engine-latency.md on a real broker and a real ClickHouse: its SQL, its page for Prometheus, its alerts."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_engine import kafka_engine
from harness.kafka_topics import Message, Topics
from harness.paths import ROOT

PAGE = (ROOT / "docs" / "kafka-engine-latency.md").read_text()
TABLE, VIEW, QUERY = re.findall(r"```sql\n(.*?)```", PAGE, re.S)
HANDLERS = re.findall(r"```xml\n(.*?)```", PAGE, re.S)[0]
ALERTS = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)[0]
LAG, AGE = "clickhouse_kafka_lag_seconds", "clickhouse_kafka_newest_message_age_seconds"
TEN_MINUTES_MS = 600_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One with the page that Prometheus asks for."""
    inner = HANDLERS.replace("the query above", escape(QUERY)).split("\n", 1)[1].rsplit("</clickhouse>", 1)[0]
    started = Engine(tmp_path_factory.mktemp("scraped"), config=inner)
    started.direct.sql(TABLE)
    yield started
    started.stop()


def scraped(clickhouse: Endpoint) -> dict[tuple[str, str], dict[int, float]]:
    """By name and topic, the value of each partition."""
    text = page(clickhouse)
    found: dict[tuple[str, str], dict[int, float]] = {}
    for name, labels, value in re.findall(r"^(\w+)\{(.*?)\} (\S+)", text, re.M):
        given = dict(re.findall(r'(\w+)="(.*?)"', labels))
        found.setdefault((name, given["topic"]), {})[int(given["partition"])] = float(value)
    return found


def page(clickhouse: Endpoint) -> str:
    request = Request(clickhouse.url + "kafka_lag", headers=clickhouse.with_auth())
    with urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def test_lag_of_old_and_new_messages(engine: Engine, broker: Broker, topics: Topics, topic_name: str) -> None:
    clickhouse = engine.direct
    topics.create(topic_name, 3)
    now_ms = int(time.time() * 1000)
    old = [Message(b'{"id":1}', partition=0, timestamp_ms=now_ms - TEN_MINUTES_MS)]
    with kafka_engine(clickhouse, broker, topic_name, "JSONEachRow", "id UInt64") as reading:
        clickhouse.sql(VIEW)
        reading.wait_for_views(Message(b'{"id":0}', partition=1, timestamp_ms=now_ms))
        topics.send(topic_name, [*old, Message(b'{"id":2}', partition=1, timestamp_ms=now_ms)])
        reading.wait_until_all_is_read()
        took_seconds = time.time() - now_ms / 1000
        seen = scraped(clickhouse)
        clickhouse.sql("DROP TABLE kafka_lag_view SYNC")
    lag, age = seen[LAG, topic_name], seen[AGE, topic_name]
    # A partition without messages is not there.
    assert set(lag) == set(age) == {0, 1}
    assert 600 <= lag[0] <= 600 + took_seconds and 0 <= lag[1] <= took_seconds
    assert age[0] >= lag[0] and age[1] >= lag[1]


def test_a_consumer_that_stands_still(engine: Engine) -> None:
    """What was read two minutes ago, and nothing since: its lag is gone, its age grows."""
    clickhouse = engine.direct
    moments = "toStartOfInterval(now() - 120, INTERVAL 15 SECOND), now64(3) - 125, 5000, 5000, 1"
    clickhouse.sql(f"INSERT INTO kafka_lag SELECT 'standing still', 0, {moments}")
    first = scraped(clickhouse)
    assert (LAG, "standing still") not in first
    assert 125 <= first[AGE, "standing still"][0] < 185
    before = first[AGE, "standing still"][0]
    eventually(lambda: scraped(clickhouse)[AGE, "standing still"][0] > before, "the age grows")


def test_promtool_agrees(engine: Engine, tmp_path: Path) -> None:
    engine.direct.sql("INSERT INTO kafka_lag VALUES ('checked', 0, now(), now64(3), 1500, 1500, 1)")
    text = page(engine.direct)
    assert scraped(engine.direct)[LAG, "checked"] == {0: 1.5}
    metrics = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert metrics.returncode == 0, metrics.stdout + metrics.stderr
    (tmp_path / "alerts.yml").write_text(ALERTS)
    rules = subprocess.run(["promtool", "check", "rules", str(tmp_path / "alerts.yml")], capture_output=True, text=True)
    assert rules.returncode == 0, rules.stdout + rules.stderr
