"""What a gateway's /metrics says, by name and labels."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass

from harness.gateway import Gateway

SAMPLE = re.compile(r'^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


class Metrics:
    """One reading of the page. `text` is what promtool may look at."""

    def __init__(self, text: str):
        self.text = text
        found = (SAMPLE.match(line) for line in text.splitlines() if not line.startswith("#"))
        self.samples = [
            Sample(each["name"], dict(LABEL.findall(each["labels"] or "")), float(each["value"])) for each in found if each
        ]

    def of(self, name: str, **labels: object) -> list[Sample]:
        wanted = {label: str(value) for label, value in labels.items()}.items()
        return [sample for sample in self.samples if sample.name == name and wanted <= sample.labels.items()]

    def sum(self, name: str, **labels: object) -> float:
        return sum(sample.value for sample in self.of(name, **labels))

    def largest(self, name: str, **labels: object) -> float | None:
        return max((sample.value for sample in self.of(name, **labels)), default=None)

    def mean(self, name: str, **labels: object) -> float:
        """Of a histogram's observations."""
        count = self.sum(f"{name}_count", **labels)
        assert count, f"{name} with {labels} has no observation"
        return self.sum(f"{name}_sum", **labels) / count

    def above(self, name: str, bound: float, **labels: object) -> float:
        """How many observations of a histogram are surely larger than `bound`: they are beyond the first bucket that ends after it."""
        buckets = self.of(f"{name}_bucket", **labels)
        ends = sorted({float(sample.labels["le"]) for sample in buckets})
        end = next(end for end in ends if end >= bound)
        within = sum(sample.value for sample in buckets if float(sample.labels["le"]) == end)
        return self.sum(f"{name}_count", **labels) - within


def metrics_of(gateway: Gateway) -> Metrics:
    connection = http.client.HTTPConnection(gateway.admin.host, gateway.admin.port, timeout=60)
    try:
        connection.request("GET", "/metrics")
        return Metrics(connection.getresponse().read().decode())
    finally:
        connection.close()
