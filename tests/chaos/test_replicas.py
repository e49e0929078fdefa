"""kill -9 of the gateway, of a replica, of their Keeper, and cuts of the network between any two of them, under load."""

from __future__ import annotations

import os
from pathlib import Path

from chaos.rounds import Rounds
from chaos.stage import OfReplicas
from harness.replicas import needs_replicas

# Three by default; `make chaos` takes as many as of the other kills.
ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "6"))
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))


def test_nothing_acknowledged_is_lost_or_doubled_on_any_replica(tmp_path: Path) -> None:
    needs_replicas()
    stage = OfReplicas(tmp_path / "stage", SEED)
    try:
        Rounds(stage, SEED).run(max(1, ROUNDS // 3))
        print("befell:", dict(stage.befell))
        assert stage.are_alike()
    finally:
        stage.stop()
