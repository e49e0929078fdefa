"""Pipelines come to the broker by TLS and by every mechanism of SASL, and say what is wrong where they can't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.endpoint import Endpoint
from harness.kafka import PASSWORD, USER, Broker
from harness.kafka_numbers import Target, numbered
from harness.kafka_tokens import token
from harness.kafka_topics import Topics
from harness.pipelines import Seen, pipeline

Start = Callable[..., Seen]


def ways(broker: Broker, folder: Path) -> dict[str, tuple[str, dict[str, object]]]:
    """By name: the listener, and what a pipeline has to be told."""
    tls = {"ca_file": broker.keys.ca}
    shown = {**tls, "certificate_file": broker.keys.client, "key_file": broker.keys.client_key}
    found: dict[str, tuple[str, dict[str, object]]] = {"tls": ("SSL", {"tls": tls}), "certificate": ("SSL", {"tls": shown})}
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        more = {"tls": tls} if protocol == "SASL_SSL" else {}
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            sasl = {"mechanism": mechanism, "user": USER, "password": PASSWORD}
            found[f"{protocol}-{mechanism}".lower()] = (protocol, {"sasl": sasl, **more})
        sasl = {"mechanism": "OAUTHBEARER", "token_file": token(folder)}
        found[f"{protocol}-bearer".lower()] = (protocol, {"sasl": sasl, **more})
    return found


def address(broker: Broker, protocol: str) -> list[str]:
    return [str(broker.secured(protocol)["bootstrap.servers"])]


def test_every_way_in(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, tmp_path: Path, start_pipelines: Start
) -> None:
    topics.create(topic_name, 2)
    topics.send(topic_name, numbered(0, 100, 2))
    targets: list[Target] = []
    settings: list[dict[str, object]] = []
    for way, (protocol, more) in ways(broker, tmp_path).items():
        targets.append(Target(direct, way.replace("-", "_")))
        own = {"name": way, "group": f"{topic_name}-{way}", "brokers": address(broker, protocol)}
        settings.append(pipeline(broker, targets[-1].full_name, topic_name, **own, **more))
    seen = start_pipelines(*settings)
    for target in targets:
        target.wait(100)
        target.check(range(100))
    log = seen.gateway.child.log()
    assert PASSWORD not in log and (tmp_path / "token").read_text().strip() not in log


def test_what_is_wrong_is_said(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """The gateway serves all the same, and none of them keeps another back."""
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(0, 10, 1))
    target = Target(direct)
    wrong = "not this one"
    sasl = {"mechanism": "SCRAM-SHA-256", "user": USER, "password": wrong}
    cases: dict[str, dict[str, object]] = {
        "password": {"brokers": address(broker, "SASL_PLAINTEXT"), "sasl": sasl},
        "authority": {"brokers": address(broker, "SSL"), "tls": {"ca_file": broker.folder / "server.pem"}},
        "plain": {"brokers": address(broker, "SSL")},
        "topic": {"topics": [f"{topic_name}-missing"]},
        "nobody": {"brokers": ["127.0.0.1:1"]},
    }
    settings = [
        pipeline(broker, target.full_name, topic_name, **{"name": name, "group": f"{topic_name}-{name}", **more})
        for name, more in cases.items()
    ]
    seen = start_pipelines(*settings, pipeline(broker, target.full_name, topic_name, name="right"))
    target.wait(10)
    words = {
        "password": ("uthentication",),
        "authority": ("TLS", "certificate"),
        "plain": ("TLS", "closed the connection"),
        "topic": (f"{topic_name}-missing",),
        "nobody": ("127.0.0.1:1",),
    }
    for name, either in words.items():
        # A broker that has only just begun may have other troubles first.
        seen.row(lambda row: any(word in row["last_error"] for word in either), f"{name} is said", pipeline=name)
    assert wrong not in seen.gateway.child.log() and wrong not in str(seen.rows())
    target.check(range(10))


def test_a_topic_that_comes_later(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    seen.row(lambda row: topic_name in row["last_error"], "the topic's absence is said")
    topics.create(topic_name, 2)
    topics.send(topic_name, numbered(0, 10, 2))
    target.wait(10)
    target.check(range(10))


def test_a_broker_that_comes_back(
    direct: Endpoint, start_broker: Callable[..., Broker], topic_name: str, start_pipelines: Start
) -> None:
    broker = start_broker()
    topics = Topics(broker)
    topics.create(topic_name, 2)
    topics.send(topic_name, numbered(0, 10, 2))
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(10)
    broker.stop()
    seen.row(lambda row: row["last_error"] != "", "the broker's absence is said")
    broker.start()
    topics.send(topic_name, numbered(10, 20, 2))
    target.wait(20)
    target.check(range(20))
