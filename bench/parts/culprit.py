"""A batch of 450 inserts, one of which violates a constraint: how long the other 449 wait, beside a batch without it.

The batch is sealed by its number of inserts, so that every round flushes all of them together and waits for nothing else.
ClickHouse refuses the batch; the gateway finds the insert that it refuses and stores the others. Which insert that is follows from
its id: in every second batch, at another place each time.
"""

from argparse import Namespace

from bench.base.document import prose
from bench.base.figures import Goals, figure, median, table
from bench.base.part import Option, part
from bench.base.scenario import OneTable, Scenario, run
from bench.base.stack import Stack

REFUSED = "Code: 469"


@part(
    "culprit", "A batch with one insert that is refused", quick={"rounds": 3},
    inserts=Option(450), rounds=Option(15, "of each kind of batch, alternately"),
)  # fmt: skip
def culprit(stack: Stack, options: Namespace) -> str:
    """A batch with one insert that ClickHouse refuses."""
    batches = 2 * (options.rounds + 1)
    settings = (
        "async_insert=1", "wait_for_async_insert=1", "async_insert_use_adaptive_busy_timeout=0",
        "async_insert_busy_timeout_ms=5000", f"async_insert_max_query_number={options.inserts}",
    )  # fmt: skip
    scenario = Scenario(
        "stored", options.inserts, 600, warmup_seconds=0, only_settings=settings,
        load={"in_step": True, "inserts_per_connection": batches},
    )  # fmt: skip
    constraint = f", CONSTRAINT known CHECK NOT (seq % 2 = 1 AND conn = seq * 197 % {options.inserts})"
    row = run(stack, scenario, OneTable("bench.culprit", more=constraint))
    if row["refused"] != options.rounds + 1 or REFUSED not in row["error"]:
        raise SystemExit(f"{row['refused']} inserts were refused, not {options.rounds + 1}; first: {row['error']}")
    # The first of each kind warms connections and caches.
    without, with_one = row["steps_ms"][2::2], row["steps_ms"][3::2]
    lines = [[name, figure(median(ms)), figure(max(ms))] for name, ms in (("without a culprit", without), ("with one", with_one))]
    goals = Goals()
    goals.at_most("with one culprit to without", 3, median(with_one) / median(without))
    shown = table(["batch", "ms until the last good one is answered", "slowest"], lines)
    return f"{prose('culprit', inserts=options.inserts)}{shown}\n{goals}"
