"""Several ClickHouse servers behind a gateway: two shards, whose rows are cut here instead of there, and a replica that dies.

A cluster of real servers is started for each question (`tests/harness/replicas.py`), beside the stack that every part has. What is asked
of several gateways will be a third question, with a file of its own like the two.
"""

from argparse import Namespace
from pathlib import Path

from bench.base.figures import Goals
from bench.base.part import Option, part
from bench.base.stack import Stack
from bench.parts.cluster_dead_replica import dead_replica
from bench.parts.cluster_shards import ENGINES, shards

QUESTIONS = {"shards": shards, "dead-replica": dead_replica}


@part(
    "cluster", "Shards and replicas", quick={"seconds": 2.0, "rounds": 1},
    seconds=Option(5.0, "how long each run through a gateway is measured"),
    rounds=Option(3, "of all ways, alternately"), connections=Option(200),
    rows=Option(50, "of each insert into the shards: up to 900"),
    engines=Option(list(ENGINES), "of the shards' tables; Null last, for it keeps no rows", tuple(ENGINES), rare=True),
    questions=Option(list(QUESTIONS), choices=tuple(QUESTIONS), rare=True),
)  # fmt: skip
def cluster(stack: Stack, options: Namespace) -> str:
    """Two shards, beside a Distributed table; and a replica that is killed."""
    goals, texts = Goals(), []
    for name in options.questions:
        texts.append(QUESTIONS[name](Path(stack.folder.name) / name, options, goals))
    return "\n".join([*texts, str(goals)])
