"""Faults on the real thing, under load: afterwards every insert is counted.

- `kinds.py`, `writer.py`, `load.py`: writers of every ack level, with and without tokens, whose rows say who wrote them and as which
  insert; what each was promised is kept outside the gateway
- `count.py`: compares the tables with the promises: missing, doubled, out of order, altered
- `stage.py`: the processes that are killed and started again: a gateway with its embedded engine, or one before an engine of its own
- `rounds.py`: the recipe that kills them at seeded moments; `make chaos ROUNDS=100 SEED=1` runs as many as wanted
- `relay.py`: stands between gateway and engine and hangs, resets, answers half
- `clock.c`, `small_disk.py`, `failing_disk.py`: a clock that jumps, a disk that fills up, one whose calls fail
"""
