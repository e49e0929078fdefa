"""Several ClickHouse servers behind a gateway: two shards, whose rows are cut here instead of there, and a replica that dies. And several
gateways before one server.

Servers of their own are started for each question (`tests/harness/replicas.py`), beside the stack that every part has. Each question has
a file of its own.
"""

from argparse import Namespace
from pathlib import Path

from bench.base.figures import Goals
from bench.base.part import Option, part
from bench.base.stack import Stack
from bench.parts.cluster_dead_replica import dead_replica
from bench.parts.cluster_gateways import gateways
from bench.parts.cluster_shards import ENGINES, shards

QUESTIONS = {"shards": shards, "dead-replica": dead_replica, "gateways": gateways}


@part(
    "cluster", "Shards, replicas, several gateways", quick={"seconds": 2.0, "rounds": 1},
    seconds=Option(5.0, "how long each run through a gateway is measured"),
    rounds=Option(3, "of all ways, alternately"), connections=Option(200),
    rows=Option(50, "of each insert into the shards: up to 900"),
    engines=Option(list(ENGINES), "of the shards' tables; Null last, for it keeps no rows", tuple(ENGINES), rare=True),
    questions=Option(list(QUESTIONS), choices=tuple(QUESTIONS), rare=True),
)  # fmt: skip
def cluster(stack: Stack, options: Namespace) -> str:
    """Two shards, beside a Distributed table; a replica that is killed; four gateways."""
    goals, texts = Goals(), []
    for name in options.questions:
        texts.append(QUESTIONS[name](Path(stack.folder.name) / name, options, goals))
    return "\n".join([*texts, str(goals)])
