"""What is wrong with an append in one transaction is said, and leaves nothing."""

from __future__ import annotations

import http.client
import io
import json
import random
import socket
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.ordered import PATH, Append, native
from harness.sql_store import READER, SqlStore


@pytest.fixture(scope="module")
def gateway(store: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    started = store.gateway(tmp_path_factory.mktemp("refusals"), "[append]\nmax_batch_bytes = 200000\n")
    yield started
    assert started.stop() == 0


@pytest.fixture
def endpoint(gateway: Gateway) -> Endpoint:
    return gateway.http


@pytest.fixture(scope="module")
def impatient(store: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One that soon gives up an append of which nothing comes any more."""
    started = store.gateway(tmp_path_factory.mktemp("impatient"), "[append]\nidle_timeout_ms = 2000\n")
    yield started.http
    assert started.stop() == 0


def count(endpoint: Endpoint, table: str) -> int:
    return int(endpoint.sql(f"SELECT count(*) FROM {table}"))


def test_a_check_in_batch_37(endpoint: Endpoint) -> None:
    endpoint.sql("CREATE TABLE c (n BIGINT CHECK (n <> 3705), u BIGINT)")
    endpoint.sql("INSERT INTO c SELECT 1, 1")
    append = Append(endpoint, "c")
    payloads = [native(n=range(b * 100, b * 100 + 100), u=[b] * 100) for b in range(50)]
    reply = append.send(payloads, random.Random(3))
    assert (reply.status, reply.headers["x-clickhouse-exception-code"]) == (500, "469"), reply.text
    assert (reply.headers["x-windrow-batch"], reply.headers["x-windrow-row"]) == ("37", "5")
    assert "Batch 37, row 5" in reply.text
    status = append.status()
    assert (status["state"], status["error"]["batch"], status["error"]["row"]) == ("failed", 37, 5)
    assert append.put(49, payloads[49]).code == 469, "every later request hears the first error"
    assert count(endpoint, "c") == 1


def test_a_key_that_is_there(endpoint: Endpoint) -> None:
    endpoint.sql("CREATE TABLE k (n BIGINT PRIMARY KEY)")
    endpoint.sql("INSERT INTO k SELECT 25")
    append = Append(endpoint, "k")
    for number in range(4):
        append.put(number, native(n=range(number * 10, number * 10 + 10)))
    reply = append.commit(4)
    assert (reply.code, reply.headers.get("x-windrow-batch"), reply.headers.get("x-windrow-row")) == (469, "2", "5")
    assert count(endpoint, "k") == 1


def stream(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    batch = pa.RecordBatch.from_pydict(columns)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"n": pa.array([1.5], pa.float64())}, "n"),
        ({"n": pa.array([2**40], pa.int64()), "small": pa.array([2**40], pa.int64())}, "small"),
        ({"unknown": pa.array([1], pa.int64())}, "unknown"),
        ({"n": pa.array(["text"], pa.string())}, "n"),
    ],
)
def test_what_a_column_does_not_hold(
    store: SqlStore, endpoint: Endpoint, columns: dict[str, pa.Array], column: str
) -> None:
    endpoint.sql("CREATE TABLE IF NOT EXISTS types_ (n BIGINT, small INTEGER)")
    if (store.name, column) == ("sqlite", "small"):
        # All its integers are as wide.
        columns = {**columns, "small": pa.array(["text"])}
    append = Append(endpoint, "types_")
    reply = append.put(0, stream(**columns), format="ArrowStream")
    assert 400 <= reply.status < 500 and column in reply.text, reply.text
    assert reply.headers["x-windrow-batch"] == "0"
    assert append.commit(1).text == reply.text
    assert count(endpoint, "types_") == 0


def test_another_schema_than_the_first(endpoint: Endpoint) -> None:
    endpoint.sql("CREATE TABLE schemas_ (n BIGINT, u BIGINT)")
    append = Append(endpoint, "schemas_")
    assert append.put(0, native(n=[1], u=[1])).status == 200
    assert append.put(1, native(n=[1])).status == 400
    assert append.status()["state"] == "failed"


def test_a_table_that_is_made_anew_before_the_first_batch(endpoint: Endpoint) -> None:
    """Batches are read for the types that the table had when the append was opened."""
    endpoint.sql("CREATE TABLE anew (n BIGINT)")
    append = Append(endpoint, "anew")
    assert append.open().status == 201
    endpoint.sql("DROP TABLE anew")
    endpoint.sql("CREATE TABLE anew (n DOUBLE PRECISION)")
    append.put(0, native(n=[2**53 + 1]))
    assert append.commit(1).status != 200
    assert count(endpoint, "anew") == 0


def test_who_may_not(endpoint: Endpoint, gateway: Gateway) -> None:
    endpoint.sql("CREATE TABLE mine (n BIGINT)")
    append = Append(endpoint, "mine")
    assert append.put(0, native(n=[1])).status == 200
    reader = endpoint.as_user(*READER)
    assert Append(reader, "mine", append.id).ask("GET").status == 403
    for method in ("POST", "PUT"):
        put = Append(reader, "mine").ask(method, "/batches/0", native(n=[1]), table="mine", format="Native")
        assert put.code == 164, put.text
    assert Append(endpoint.as_user("default", "wrong"), "mine").put(0, native(n=[1])).status == 403
    assert append.abort().status == 200
    assert append.status()["state"] == "aborted"
    assert append.put(1, native(n=[1])).status == 409, "one that was under way opens nothing"


def test_what_is_not_there(endpoint: Endpoint) -> None:
    append = Append(endpoint, "nowhere")
    reply = append.put(0, native(n=[1]))
    assert (reply.status, reply.code) == (404, 60)
    unknown = Append(endpoint, "x")
    assert unknown.ask("GET").status == 404
    assert unknown.status() == {"id": unknown.id, "state": "gone"}
    assert unknown.commit(1).status == 404
    assert unknown.abort().status == 200


def test_a_client_that_vanishes(impatient: Endpoint) -> None:
    impatient.sql("CREATE TABLE vanished (n BIGINT)")
    append = Append(impatient, "vanished")
    assert append.put(1, native(n=[1])).status == 200
    with socket.create_connection((impatient.host, impatient.port)) as half:
        head = f"POST {PATH}/{append.id}/batches/0 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        half.sendall(head.encode() + b"abc")
    status = eventually(lambda: (s := append.status())["state"] == "failed" and s, "the append is dropped")
    assert status["error"]["code"] == 159
    assert append.commit(2).status == 408
    assert count(impatient, "vanished") == 0


def test_a_commit_whose_batches_do_not_come(impatient: Endpoint) -> None:
    impatient.sql("CREATE TABLE waits (n BIGINT)")
    append = Append(impatient, "waits")
    assert append.put(0, native(n=[1])).status == 200
    reply = append.commit(2)
    assert (reply.status, reply.code) == (408, 159) and "Batch 1" in reply.text


def test_numbers_and_ends(endpoint: Endpoint) -> None:
    endpoint.sql("CREATE TABLE ends (n BIGINT)")
    append = Append(endpoint, "ends")
    assert append.put(2, native(n=[1])).status == 200
    assert append.commit(2).status == 400, "batch 2 has come"
    assert append.put(2**32, native(n=[1])).status == 400
    assert append.status()["received"] == [[2, 2]]
    assert append.abort().status == 200
    empty = Append(endpoint, "ends")
    assert json.loads(empty.commit(0, table="ends").body)["rows"] == 0


@pytest.mark.parametrize("size", [1, 7, 300_000])
def test_rubbish_for_a_batch(endpoint: Endpoint, size: int) -> None:
    endpoint.sql("CREATE TABLE IF NOT EXISTS rubbish (n BIGINT)")
    for kind in ("Native", "ArrowStream"):
        append = Append(endpoint, "rubbish")
        reply = append.put(0, random.Random(size).randbytes(size), format=kind)
        assert 400 <= reply.status < 500, (kind, size, reply.text)
        assert append.status()["state"] == "failed"
    assert count(endpoint, "rubbish") == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "", 400),
        ("POST", "?table=", 400),
        ("POST", "?table=a.b.c", 400),
        ("POST", "?table=ok&columns=,", 400),
        ("POST", "?table=ok&columns=x", 400),
        ("POST", "?table=ok&id=7", 400),
        ("POST", "?table=ok&ordered=maybe", 400),
        ("POST", "?tabel=ok", 400),
        ("PUT", "", 404),
        ("GET", "/x", 400),
        ("GET", "/" + str(uuid.UUID(int=5)) + "/batches", 404),
        ("POST", "/" + str(uuid.UUID(int=5)) + "/batches/x?table=ok", 400),
        ("POST", "/" + str(uuid.UUID(int=5)) + "/batches/1?format=CSV&table=ok", 400),
        ("POST", "/" + str(uuid.UUID(int=5)) + "/commit", 400),
        ("POST", "/" + str(uuid.UUID(int=5)) + "/commit?batches=-1", 400),
        ("POST", "/" + str(uuid.UUID(int=5)) + "/commit?batches=1", 404),
        ("BREW", "/" + str(uuid.UUID(int=5)), 404),
    ],
)
def test_rubbish_for_a_request(endpoint: Endpoint, method: str, path: str, status: int) -> None:
    endpoint.sql("CREATE TABLE IF NOT EXISTS ok (n BIGINT)")
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=30)
    for body in (b"", b"rubbish"):
        connection.request(method, PATH + path, body, endpoint.with_auth())
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == status and text.startswith("Code: "), (answer.status, text)
    connection.close()
