"""Damaged payloads, joined with whole ones as text: each is stored, or refused, as if it had come alone."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from differential.budget import generator, scaled
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, queued, queued_inserts

COLUMNS = "id UInt64, tags Array(String), data JSON, note Nullable(String), t DateTime('UTC')"
# A tuple may go over several fields of CSV: tables that have one are not joined there.
SAMPLES = {
    "JSONEachRow": '[{"id":1,"tags":["a","]"],"data":{"x":"}{"},"note":"n"},\n{"id":2}]',
    "JSONStringsEachRow": '{"id":"1","data":"{\\"x\\":1}"}\n{"id":"2","note":"[{"}\n',
    "JSONCompactEachRow": '[1,["a"],{"x":"]"},null,"2026-11-22 10:00:00"]\n[2,[],{},"n",0],\n',
    "JSONCompactEachRowWithNames": '["data","id"]\n[{},1]\n[{"x":[1]},2]\n',
    "CSV": '1,"[\'a\']","{""x"":""a b""}",x,2026-11-22 10:00:00\r\n2 , [] ,{}, "n,""\n" ,2026-11-22 10:00:01\n',
    "CSVWithNames": 'data,"id"\n{},1\n"{""x"":1}",2',
    "TSV": "1\t['a','b\\'\\n']\t{\"x\":\"\\\\n\"}\t\\N\t2026-11-22 10:00:00\n2\t[]\t{}\ta\\tb\t1700000000",
    "TSVWithNames": "tags\tdata\n['x']\t{}\n['y\\'','z']\t{\"a\":1}\n",
    "TSVRaw": '1\t[\'a\']\t{"x":"\\\\"}\t\\\t0\n2\t[]\t{}\tn"\t1\n',
}
INTERESTING = "{}[]()\",:;'\\ 01-\t\n\rN"
CHANGES = 120


def damaged(sample: str, rng: random.Random) -> bytes:
    text = sample.encode()
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(text) + 1)
        put = rng.choice((b"", rng.choice(INTERESTING).encode(), text[at : at + rng.randrange(9)] * 2))
        text = text[:at] + put + text[at + rng.randrange(2) :]
    return text[: rng.randrange(len(text))] if rng.randrange(5) == 0 else text


def stored(direct: Endpoint, table: str) -> Counter[str]:
    return Counter(direct.sql(f"SELECT * FROM {table} FORMAT JSONEachRow").splitlines())


@pytest.mark.parametrize("format_name", SAMPLES)
def test_damaged_payloads_among_whole_ones(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, format_name: str
) -> None:
    rng = generator("joining", format_name)
    sample = SAMPLES[format_name]
    payloads = [damaged(sample, rng) if n % 3 else sample.encode() for n in range(scaled(CHANGES))]
    for table in ("t", "alone"):
        direct.sql(f"CREATE TABLE {table} ({COLUMNS}) ENGINE = MergeTree ORDER BY id")
    for payload in payloads:
        direct.insert(f"INSERT INTO alone FORMAT {format_name}", payload)
        tested.insert(f"INSERT INTO t FORMAT {format_name}", payload, **HELD_NOT_WAITING)
    joined = queued_inserts(tested)
    print(f"{format_name}: {joined} of {len(payloads)} payloads joined in {len(queued(tested))} batches")
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert stored(direct, "t") == stored(direct, "alone")
    assert len(payloads) // 3 <= joined < len(payloads)
