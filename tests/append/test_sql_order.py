"""Appends in one transaction land in the order of their numbers, whatever happens to their batches on the way."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from harness.bad_network import BadNetwork, Fault
from harness.endpoint import Endpoint, Reply
from harness.ordered import Append, native, persist
from harness.sql_store import SqlStore

SEEDS = {"duckdb": 300, "postgresql": 60, "sqlite": 60}
CHANCES = {Fault.LOST: 0.05, Fault.TWICE: 0.15, Fault.HELD: 0.2, Fault.UNANSWERED: 0.05}


@pytest.fixture(scope="module")
def small(store: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A gateway that has little memory for batches."""
    config = "[append]\nwindow_bytes = 65536\nmax_memory_bytes = 200000\n"
    gateway = store.gateway(tmp_path_factory.mktemp("small"), config)
    yield gateway.http
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def plain(store: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    gateway = store.gateway(tmp_path_factory.mktemp("plain"))
    yield gateway.http
    assert gateway.stop() == 0


def arrow(**columns: Sequence[object] | pa.Array) -> bytes:
    batch = pa.RecordBatch.from_pydict(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def rows(endpoint: Endpoint, query: str) -> list[list]:
    return [json.loads(line) for line in endpoint.sql(f"{query} FORMAT JSONCompactEachRow").splitlines()]


class AnyFormat(Append):
    """Its batches are in Native or in Arrow's stream format."""

    def put(self, number: int, payload: bytes, **parameters: object) -> Reply:
        is_arrow = payload.startswith(b"\xff\xff\xff\xff")
        return super().put(number, payload, format="ArrowStream" if is_arrow else "Native", **parameters)


def payloads_of(seed: int, rng: random.Random) -> tuple[list[list[int]], list[bytes]]:
    # Now and then more than there is memory for.
    most = 2000 if seed % 25 == 0 else 20
    parts = [[rng.randrange(10**9) for _ in range(rng.randrange(most))] for _ in range(rng.randrange(1, 12))]
    encode = native if seed % 2 else arrow
    kind = (lambda values: values) if seed % 2 else (lambda values: pa.array(values, pa.int64()))
    return parts, [encode(n=kind(part), seed=kind([seed] * len(part))) for part in parts]


def test_many_seeds_over_a_bad_network(store: SqlStore, small: Endpoint) -> None:
    store.create(small, "o", "seed BIGINT, n BIGINT")
    seeds = range(SEEDS[store.name])

    def one(seed: int) -> list[int]:
        rng = random.Random(seed)
        parts, payloads = payloads_of(seed, rng)
        append = AnyFormat(network.endpoint, "o")
        reply = append.send(payloads, rng)
        assert reply.status == 200, (seed, reply.text)
        expected = [n for part in parts for n in part]
        answer = json.loads(reply.body)
        assert (answer["rows"], answer["batches"], answer["atomic"]) == (len(expected), len(parts), "all"), seed
        return expected

    # Several appends at once, each over 8 connections.
    with BadNetwork(small, 7, CHANCES) as network, ThreadPoolExecutor(4) as pool:
        expected = list(pool.map(one, seeds))
    stored: dict[int, list[int]] = {seed: [] for seed in seeds}
    for seed, n in rows(small, f"SELECT seed, n FROM o ORDER BY {store.place}"):
        stored[int(seed)].append(int(n))
    assert [seed for seed in seeds if stored[seed] != expected[seed]] == []
    assert all(network.done[fault] > len(seeds) // 10 for fault in Fault), network.done


def test_commit_before_its_batches(store: SqlStore, plain: Endpoint) -> None:
    store.create(plain, "early", "n BIGINT")
    append = Append(plain, "early")
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(lambda: append.commit(3, table="early"))
        for number in (2, 0, 1):
            assert append.put(number, native(n=[number])).status == 200
        answer = json.loads(committing.result().body)
    assert answer["rows"] == 3
    again = json.loads(append.commit(3).body)
    assert again == answer
    assert rows(plain, f"SELECT n FROM early ORDER BY {store.place}") == [[0], [1], [2]]
    assert json.loads(append.put(1, native(n=[1])).body) == {"id": append.id, "batch": 1, "repeated": True, "next": 3}
    assert append.abort().status == 409


def test_beside_ordinary_inserts(plain: Endpoint) -> None:
    """Both go on at once, and a reader sees all of an append or nothing."""
    plain.sql("CREATE TABLE both_ (who VARCHAR, n BIGINT)")
    stop = threading.Event()
    seen: set[int] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(int(plain.sql("SELECT count(*) FROM both_ WHERE who = 'append'")))

    def insert(worker: int) -> None:
        for n in range(25):
            plain.insert("INSERT INTO both_ FORMAT JSONEachRow", json.dumps({"who": f"w{worker}", "n": n}).encode())

    def append(_: int) -> None:
        payloads = [arrow(who=["append"] * 50, n=pa.array(range(50), pa.int64())) for _ in range(8)]
        assert AnyFormat(plain, "both_").send(payloads, random.Random(1)).status == 200

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(insert, worker) for worker in range(3)] + [pool.submit(append, at) for at in range(3)]
        for future in done:
            future.result()
    stop.set()
    reader.join()
    assert seen <= {0, 400, 800, 1200}, seen
    counts = rows(plain, "SELECT who, count(*) FROM both_ GROUP BY who ORDER BY who")
    assert [(who, int(n)) for who, n in counts] == [("append", 1200), ("w0", 25), ("w1", 25), ("w2", 25)]


def test_an_append_that_is_slow_is_in_nobodys_way(plain: Endpoint) -> None:
    plain.sql("CREATE TABLE slow (n BIGINT)")
    appends = [Append(plain, "slow") for _ in range(2)]
    for number in range(3):
        assert all(append.put(number, native(n=[number] * 1000)).status == 200 for append in appends)
        assert plain.insert("INSERT INTO slow FORMAT CSV", f"{number}\n").status == 200
    assert plain.sql("SELECT count(*) FROM slow") == "3"
    assert all(append.commit(3).status == 200 for append in appends)
    assert plain.sql("SELECT count(*) FROM slow") == "6003"


def test_defaults_names_and_types(plain: Endpoint) -> None:
    plain.sql("CREATE TABLE d (a BIGINT, b VARCHAR DEFAULT 'none', c DOUBLE PRECISION, e TIMESTAMP)")
    append = Append(plain, "d")
    when = pa.array([0, 1_000_000], pa.timestamp("us"))
    assert append.put(0, arrow(e=when, a=pa.array([1, 2], pa.int32())), format="ArrowStream").status == 200
    assert append.commit(1).status == 200
    assert rows(plain, "SELECT a, b, c FROM d ORDER BY a") == [[1, "none", None], [2, "none", None]]
    times = [time.replace("T", " ") for (time,) in rows(plain, "SELECT CAST(e AS VARCHAR) FROM d ORDER BY a")]
    assert [time[:19] for time in times] == ["1970-01-01 00:00:00", "1970-01-01 00:00:01"]


def layouts() -> dict[str, pa.Array]:
    """The same texts and numbers in every layout that Arrow has for them."""
    texts, numbers = ["a", "a", None, "b"], [[1, 2], [], [2, 3], [1, 2]]
    as_text = [pa.array(texts, kind) for kind in (pa.large_string(), pa.string_view())]
    as_text.append(pa.array(texts).dictionary_encode())
    for ends in (pa.int16(), pa.int32(), pa.int64()):
        as_text.append(pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], ends), pa.array(["a", None, "b"])))
    kinds = (pa.large_list(pa.int64()), pa.list_view(pa.int64()), pa.large_list_view(pa.int64()))
    as_list = [pa.array(numbers, kind) for kind in kinds]
    # Views of the same values, in another order than theirs.
    offsets, sizes = pa.array([0, 0, 1, 0], pa.int32()), pa.array([2, 0, 2, 2], pa.int32())
    as_list.append(pa.ListViewArray.from_arrays(offsets, sizes, pa.array([1, 2, 3])))
    named = {f"t{at}": array for at, array in enumerate(as_text)}
    return {**named, **{f"l{at}": array for at, array in enumerate(as_list)}}


def test_every_layout_of_arrow(store: SqlStore, plain: Endpoint) -> None:
    columns = layouts()
    if store.name != "duckdb":
        columns = {name: array for name, array in columns.items() if name.startswith("t")}
    kinds = ", ".join(f"{name} {'VARCHAR(9)' if name[0] == 't' else 'BIGINT[]'}" for name in columns)
    store.create(plain, "layouts", kinds)
    append = AnyFormat(plain, "layouts")
    reply = append.send([arrow(**columns)], random.Random(1))
    assert reply.status == 200, reply.text
    of_column = {"t": ["a", "a", None, "b"], "l": [[1, 2], [], [2, 3], [1, 2]]}
    expected = [[of_column[name[0]][row] for name in columns] for row in range(4)]
    assert rows(plain, f"SELECT {', '.join(columns)} FROM layouts") == expected


def test_packed_bodies(plain: Endpoint, tmp_path: Path) -> None:
    plain.sql("CREATE TABLE packed (n BIGINT)")
    append = Append(plain, "packed")
    batch = pa.RecordBatch.from_pydict({"n": pa.array(range(5000), pa.int64())})
    for number, compression in enumerate(["lz4", "zstd", None]):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_batch(batch)
        assert persist(lambda: append.put(number, sink.getvalue(), format="ArrowStream")).status == 200
    assert json.loads(append.commit(3).body)["rows"] == 15000
