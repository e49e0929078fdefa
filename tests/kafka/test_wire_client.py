"""The Kafka client of ours against a real broker, by its example program `dump`: records of every kind, every way in, refusals."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.kafka import PASSWORD, USER, Broker
from harness.kafka_tokens import token
from harness.kafka_topics import COMPRESSIONS, Message, Topics
from harness.paths import example_binary

OLD_MS = 1_600_000_000_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SECONDS = 60


def run(address: str, topic: str, password: str = PASSWORD, **names: object) -> subprocess.CompletedProcess[str]:
    given = [f"{name}={value}" for name, value in names.items()]
    environment = {**os.environ, "KAFKA_PASSWORD": password}
    command = [str(example_binary("dump")), address, topic, *given]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)


def dump(address: str, topic: str, **names: object) -> list[Message]:
    done = run(address, topic, **names)
    assert done.returncode == 0, done.stderr
    return [message(line) for line in done.stdout.splitlines()]


def message(line: str) -> Message:
    partition, offset, timestamp_ms, key, value = line.split("\t")
    texts = (None if text == "null" else text.encode() for text in (value, key))
    return Message(*texts, partition=int(partition), timestamp_ms=int(timestamp_ms), offset=int(offset))


def values(address: str, topic: str, **names: object) -> list[str]:
    return [(found.value or b"").decode() for found in dump(address, topic, **names)]


def refusal(address: str, topic: str, **names: object) -> str:
    done = run(address, topic, **names)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    return done.stderr


def way_in(broker: Broker, protocol: str) -> str:
    return str(broker.secured(protocol)["bootstrap.servers"])


def test_records_of_every_compression(broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 2)
    sent = [Message(f"value-{n}".encode() * (n % 50), f"key-{n}".encode(), n % 2, OLD_MS + n) for n in range(1_000)]
    sent += [Message(None, b"deleted", 0, OLD_MS), Message(b"", None, 1, OLD_MS), Message(b"y" * 500_000, None, 1, OLD_MS)]
    for compression in COMPRESSIONS:
        topics.send(topic_name, sent, compression)
    dumped = dump(broker.address, topic_name)
    for partition in (0, 1):
        found = [each for each in dumped if each.partition == partition]
        expected = [each for each in sent if each.partition == partition] * len(COMPRESSIONS)
        assert [each.offset for each in found] == list(range(len(expected)))
        assert next(((f, e) for f, e in zip(found, expected) if f != e), None) is None


def test_transactions_are_seen_when_they_are_committed(broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    for n in range(20):
        topics.send_in_transaction(topic_name, [Message(f"{n}".encode(), partition=0)], f"{topic_name}-{n % 3}", n % 4 == 0)
    assert values(broker.address, topic_name) == ["0", "4", "8", "12", "16"]
    assert values(broker.address, topic_name, isolation="read_uncommitted") == [str(n) for n in range(20)]


def test_a_time_to_begin_at(broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(f"{n}".encode(), partition=0, timestamp_ms=OLD_MS + 10 * n) for n in range(10)])
    assert values(broker.address, topic_name, from_ms=OLD_MS + 65) == ["7", "8", "9"]
    assert values(broker.address, topic_name, from_ms=OLD_MS + 1_000) == []
    topics.forget_before(topic_name, 0, 8)
    assert values(broker.address, topic_name) == ["8", "9"]


def test_the_newest_records(broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 3)
    assert dump(broker.address, topic_name, last=5) == []
    topics.send(topic_name, [Message(f"{n}".encode(), partition=n % 2, timestamp_ms=OLD_MS + n) for n in range(20)])
    assert values(broker.address, topic_name, last=5) == ["15", "16", "17", "18", "19"]
    assert values(broker.address, topic_name, last=50) == [f"{n}" for n in range(20)]
    # Markers of transactions, and what was aborted, have offsets as well.
    for n in range(20, 24):
        sent = [Message(f"{n}".encode(), partition=0, timestamp_ms=OLD_MS + n)]
        topics.send_in_transaction(topic_name, sent, topic_name, n % 2 == 0)
    assert values(broker.address, topic_name, last=4) == ["18", "19", "20", "22"]


def test_a_range_of_offsets(broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 2)
    topics.send(topic_name, [Message(f"{n}".encode(), partition=1) for n in range(100)])
    assert values(broker.address, topic_name, range="1:20-79") == [f"{n}" for n in range(20, 80)]
    assert values(broker.address, topic_name, range="1:20-20") == ["20"]
    topics.forget_before(topic_name, 1, 30)
    done = run(broker.address, topic_name, range="1:20-39")
    assert [message(line).offset for line in done.stdout.splitlines()] == list(range(30, 40))
    assert done.stderr == "gap\t20\t29\n"
    # All of it is gone, and, after some patience, what is behind the end.
    assert run(broker.address, topic_name, range="1:0-9").stderr == "gap\t0\t9\n"
    done = run(broker.address, topic_name, range="1:90-109")
    assert [message(line).offset for line in done.stdout.splitlines()] == list(range(90, 100))
    assert done.stderr == "gap\t100\t109\n"
    assert "made anew" in refusal(broker.address, topic_name, range="1:40-49", topic_id="0f" * 16)
    assert "deleted" in refusal(broker.address, f"{topic_name}.none", range="0:0-1")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_every_mechanism(
    broker: Broker, topics: Topics, topic_name: str, tmp_path: Path, protocol: str, mechanism: str
) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b"v", partition=0)])
    names: dict[str, object] = {"sasl": mechanism, "user": USER}
    if mechanism == "OAUTHBEARER":
        names = {"sasl": mechanism, "token_file": token(tmp_path)}
    if protocol == "SASL_SSL":
        names["ca"] = broker.keys.ca
    assert values(way_in(broker, protocol), topic_name, **names) == ["v"]


def test_tls_with_and_without_a_certificate(broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b"v", partition=0)])
    address = way_in(broker, "SSL")
    assert values(address, topic_name, ca=broker.keys.ca) == ["v"]
    shown = {"certificate": broker.keys.client, "key": broker.keys.client_key}
    assert values(address, topic_name, ca=broker.keys.ca, **shown) == ["v"]
    assert "only be given together" in refusal(address, topic_name, ca=broker.keys.ca, certificate=broker.keys.client)


def test_a_token_from_a_command(broker: Broker, topics: Topics, topic_name: str, tmp_path: Path) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b"v", partition=0)])
    address = way_in(broker, "SASL_PLAINTEXT")
    assert values(address, topic_name, sasl="OAUTHBEARER", token_command=f"cat {token(tmp_path)}") == ["v"]
    missing = refusal(address, topic_name, sasl="OAUTHBEARER", token_command=f"cat {tmp_path}/nothing")
    assert "AUTHENTICATION_FAILED" in missing and "exit status: 1" in missing


def test_whom_the_broker_does_not_believe(broker: Broker, topic_name: str, tmp_path: Path) -> None:
    address = way_in(broker, "SASL_PLAINTEXT")
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        for user, password in ((USER, "wrong"), ("nobody", PASSWORD)):
            error = refusal(address, topic_name, password=password, sasl=mechanism, user=user)
            assert "Authentication failed" in error and "AUTHENTICATION_FAILED" in error
            assert password not in error
    expired = refusal(address, topic_name, sasl="OAUTHBEARER", token_file=token(tmp_path, -3600))
    assert "invalid_token" in expired


def test_what_is_at_the_other_end_is_said(broker: Broker, topic_name: str) -> None:
    untrusted = refusal(way_in(broker, "SSL"), topic_name, ca=broker.folder / "server.pem")
    assert "TLS handshake" in untrusted
    without_tls = refusal(way_in(broker, "SSL"), topic_name)
    assert "is TLS set as it has to be?" in without_tls or "closed the connection" in without_tls
    assert "UNKNOWN_TOPIC_OR_PARTITION" in refusal(broker.address, topic_name)
    assert "has to be host:port" in refusal("nonsense", topic_name)

