"""Rows of an append land in the order of its batches, whatever order those come in, and all at once."""

from __future__ import annotations

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.bad_network import BadNetwork, Fault
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.ordered import Append, native, persist
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

SEEDS = 300
CHANCES = {Fault.LOST: 0.05, Fault.TWICE: 0.1, Fault.HELD: 0.2, Fault.UNANSWERED: 0.05}


def batches_of(rng: random.Random, seed: int) -> list[bytes]:
    sizes = [rng.randrange(60) for _ in range(rng.randrange(1, 9))]
    payloads, n = [], 0
    for size in sizes:
        payloads.append(native(seed=[seed] * size, n=range(n, n + size)))
        n += size
    return payloads


def rows_of(payloads: list[bytes]) -> int:
    # One byte each for the numbers of columns and rows: no batch has more than 127.
    return sum(payload[1] for payload in payloads)


def test_three_hundred_appends_over_a_bad_network_equal_their_sources(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE ordered (seed Int64, n Int64) ENGINE = MergeTree ORDER BY tuple()")

    def append(seed: int) -> int:
        rng = random.Random(seed)
        payloads = batches_of(rng, seed)
        reply = Append(network.endpoint, "ordered").send(payloads, rng, connections=4)
        assert reply.status == 200, f"seed {seed}: {reply.text}"
        answer = json.loads(reply.body)
        assert (answer["rows"], answer["atomic"]) == (rows_of(payloads), "all"), f"seed {seed}: {answer}"
        return rows_of(payloads)

    with BadNetwork(tested, 1, CHANCES) as network, ThreadPoolExecutor(6) as pool:
        expected = dict(zip(range(SEEDS), pool.map(append, range(SEEDS)), strict=True))
    found = direct.sql(
        "SELECT seed, count(), groupArray(n) = range(count())::Array(Int64) FROM ordered GROUP BY seed ORDER BY seed",
        max_threads=1,
    )
    rows = {int(seed): (int(count), in_order) for seed, count, in_order in map(str.split, found.splitlines())}
    assert rows == {seed: (count, "1") for seed, count in expected.items() if count}
    assert direct.sql("SELECT count() FROM ordered") == str(sum(expected.values()))
    assert all(network.done[fault] > SEEDS // 10 for fault in Fault), network.done


def test_partitions_become_visible_together(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (p Int64, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY tuple()")
    payloads = [native(p=[n % 40 for n in range(400)], n=range(b * 400, b * 400 + 400)) for b in range(4)]
    seen: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            seen.add(direct.sql("SELECT count(), uniqExact(p) FROM t", optimize_trivial_count_query=0))

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    try:
        reply = Append(tested, "t").send(payloads, random.Random(1))
    finally:
        ended.set()
        for watcher in watchers:
            watcher.join()
    assert json.loads(reply.body)["atomic"] == "all"
    assert seen <= {"0\t0", "1600\t40"}
    by_partition = direct.sql("SELECT countIf(NOT ordered) FROM (SELECT arraySort(groupArray(n) AS a) = a AS ordered "
                              "FROM t GROUP BY p)", max_threads=1)
    assert by_partition == "0"


def test_several_appends_and_inserts_to_one_table_do_not_mix(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (seed Int64, n Int64) ENGINE = MergeTree ORDER BY tuple()")

    def append(seed: int) -> int:
        payloads = [native(seed=[seed] * 50, n=range(b * 50, b * 50 + 50)) for b in range(6)]
        return Append(tested, "t").send(payloads, random.Random(seed), connections=3).status

    def insert(number: int) -> int:
        return tested.insert("INSERT INTO t FORMAT JSONEachRow", f'{{"seed":-1,"n":{number}}}').status

    with ThreadPoolExecutor(8) as pool:
        appended, inserted = pool.map(append, range(6)), pool.map(insert, range(30))
        assert set(appended) | set(inserted) == {200}
    found = direct.sql("SELECT seed, count(), groupArray(n) = range(300)::Array(Int64) FROM t WHERE seed >= 0 "
                       "GROUP BY seed ORDER BY seed", max_threads=1)
    assert found.splitlines() == [f"{seed}\t300\t1" for seed in range(6)]
    assert direct.sql("SELECT count(), uniqExact(n) FROM t WHERE seed = -1") == "30\t30"


def test_equal_appends_are_two_and_a_repeated_commit_is_one(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY tuple() "
               "SETTINGS non_replicated_deduplication_window = 100")
    for times in (1, 2):
        append = Append(tested, "t")
        first = append.send([native(n=range(10))], random.Random(0))
        again = persist(lambda append=append: append.commit(1))
        assert (first.status, again.status) == (200, 200)
        assert json.loads(first.body) == json.loads(again.body)
        assert direct.sql("SELECT count() FROM t") == str(10 * times)


def test_an_append_without_batches_is_one_of_no_rows(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY tuple()")
    append = Append(tested, "t")
    reply = append.commit(0, table=f"{tested.database}.t")
    assert (reply.status, json.loads(reply.body)["rows"]) == (200, 0), reply.text
    assert append.status()["state"] == "committed"


def test_nothing_is_left_over(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY tuple()")
    committed, aborted = Append(tested, "t"), Append(tested, "t")
    assert committed.send([native(n=[1])], random.Random(0)).status == 200
    assert aborted.put(0, native(n=[2])).status == 200
    assert aborted.abort().status == 200
    query = f"SELECT count() = 0 FROM system.tables WHERE database = '{direct.database}' AND name != 't'"
    eventually(lambda: direct.sql(query) == "1", "the staging tables are gone")
    assert direct.sql("SELECT groupArray(n) FROM t") == "[1]"
    assert aborted.status()["state"] in ("aborted", "unknown")


def test_another_gateway_does_not_say_that_nothing_is_stored(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, tmp_path: Path
) -> None:
    """Only the one that committed it knows it: ClickHouse itself remembers nothing of appends."""
    direct.sql("CREATE TABLE t (n Int64) ENGINE = MergeTree ORDER BY tuple()")
    append = Append(tested, "t")
    assert append.send([native(n=[1])], random.Random(0)).status == 200
    other = RemoteGateway(tmp_path, backend_url(TESTER, f"{direct.host}:{direct.port}"), direct)
    there = Append(other.http.as_user(tested.user, tested.password).using(tested.database), "t", append.id)
    asked, repeated = there.ask("GET"), there.commit(1)
    assert (asked.status, json.loads(asked.body)) == (404, {"id": append.id, "state": "unknown"})
    assert (repeated.status, repeated.code) == (404, 36)
    assert "not known here" in repeated.text and "it may be stored" in repeated.text
    assert other.stop() == 0
