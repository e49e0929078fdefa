"""Several brokers as one cluster."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AdminClient, PartitionMetadata

from harness.kafka import Broker, Ports


def joining(folder: Path, first: Broker, number: int, settings: dict[str, object]) -> Broker:
    """One more, of this number from 2 on. The first is the controller, and of the same version."""
    ports = Ports.free()
    listeners = ",".join(
        f"{name}://127.0.0.1:{port}"
        for name, port in (
            ("PLAINTEXT", ports.plaintext),
            ("SASL_PLAINTEXT", ports.sasl_plaintext),
            ("SSL", ports.ssl),
            ("SASL_SSL", ports.sasl_ssl),
        )
    )
    own = {"process.roles": "broker", "node.id": number, "listeners": listeners}
    voters = {"controller.quorum.voters": f"1@127.0.0.1:{first.ports.controller}"}
    return Broker(folder, ports, settings={**settings, **own, **voters}, version=first.version)


def partitions_of(admin: AdminClient, topic: str, timeout_seconds: float = 30) -> list[PartitionMetadata]:
    return list(admin.list_topics(topic, timeout=timeout_seconds).topics[topic].partitions.values())


def leaders(admin: AdminClient, topic: str) -> set[int]:
    return {partition.leader for partition in partitions_of(admin, topic)}
