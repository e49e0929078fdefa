"""`windrow append` and what lies between it and the gateway: nobody there, TLS, compression, a program that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from harness.certificate import made_in
from harness.command_line import append, begin, new_id, received, status
from harness.duckdb import DuckDbGateway
from harness.eventually import eventually
from harness.forwarder import Forwarder
from harness.gateway import Gateway
from harness.ports import free_port
from harness.users import TESTER

ROWS = 20_000
FINE = ("--batch-bytes", "8192")
ALL = f"{ROWS},{ROWS * (ROWS - 1) // 2},{ROWS}"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "rows.parquet"
    write(path, "row")
    return path


def write(path: Path, word: str) -> None:
    table = pa.table({"n": pa.array(range(ROWS), pa.int64()), "word": [f"{word} {n}" for n in range(ROWS)]})
    pa.parquet.write_table(table, path, row_group_size=3000)


def make_table(gateway: DuckDbGateway, name: str) -> None:
    gateway.http.sql(f"CREATE OR REPLACE TABLE {name} (n BIGINT, word VARCHAR)")


def sums(gateway: DuckDbGateway, name: str) -> str:
    return gateway.http.sql(f"SELECT count(*), sum(n)::BIGINT, count(DISTINCT word) FROM {name} FORMAT CSV")


def in_order(gateway: DuckDbGateway, name: str) -> bool:
    return gateway.http.sql(f"SELECT count(*) FROM {name} WHERE n <> rowid") == "0"


def test_nobody_is_there(file: Path) -> None:
    """It is said where nobody is, and nothing that was never sent is said to be stored perhaps."""
    port = free_port()
    ended = append(f"http://127.0.0.1:{port}", "t", "--retry-for", "0", file)
    assert ended.code == 3
    assert f"cannot connect to http://127.0.0.1:{port}: connection refused; nothing was sent" in ended.errors
    assert "--retry-for" in ended.errors
    assert "may be stored" not in ended.errors and "--id" not in ended.errors


def test_it_says_for_whom_it_waits_and_goes_on_when_the_gateway_comes(gateway: DuckDbGateway, file: Path) -> None:
    make_table(gateway, "waited")
    port = free_port()
    child = begin(f"http://default@127.0.0.1:{port}", "waited", *FINE, "--retry-for", "60", file)
    assert child.stderr is not None
    said = [child.stderr.readline().decode() for _ in range(2)]
    assert said[1] == f"waiting for 127.0.0.1:{port} (connection refused)\n"
    with Forwarder(port, gateway.http):
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert sums(gateway, "waited") == ALL


@pytest.mark.parametrize("method", ["none", "lz4", "zstd"])
def test_compressed_batches_arrive(gateway: DuckDbGateway, file: Path, method: str) -> None:
    make_table(gateway, "packed")
    ended = append(gateway.http, "packed", *FINE, "--compression", method, file)
    assert ended.code == 0, ended.errors
    assert sums(gateway, "packed") == ALL and in_order(gateway, "packed")


def test_unordered_is_all_or_nothing_too(gateway: DuckDbGateway, file: Path) -> None:
    make_table(gateway, "unordered")
    bad = "seed=3,delay_ms=5,drop=0.1,repeat=0.1,reorder=0.5,cut=0.1"
    ended = append(gateway.http, "unordered", *FINE, "--unordered", "--faults", bad, file)
    assert ended.code == 0, ended.errors
    assert sums(gateway, "unordered") == ALL
    gateway.http.sql("CREATE OR REPLACE TABLE unordered_checked (n BIGINT CHECK (n < 19000), word VARCHAR)")
    ended = append(gateway.http, "unordered_checked", *FINE, "--unordered", file)
    assert ended.code == 1 and "469" in ended.errors
    assert gateway.http.sql("SELECT count(*) FROM unordered_checked") == "0"


def test_https(start_gateway, tmp_path: Path, file: Path) -> None:
    cert, key = made_in(tmp_path)
    gateway: Gateway = start_gateway(f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    gateway.direct.sql("CREATE TABLE secured (n Int64, word String) ENGINE = MergeTree ORDER BY n")
    url = f"https://{TESTER.name}:{TESTER.password}@127.0.0.1:{gateway.http.port}"
    ended = append(url, "secured", *FINE, "--ca-file", cert, file)
    assert ended.code == 0, ended.errors
    assert gateway.direct.sql("SELECT count(), sum(n), uniqExact(word) FROM secured FORMAT CSV") == ALL
    ended = append(url, "secured", "--retry-for", "0", file)
    assert ended.code == 3 and "certificate" in ended.errors.lower(), ended.errors
    assert gateway.direct.sql("SELECT count() FROM secured") == str(ROWS)


def test_what_was_killed_is_not_gone_on_with_from_another_file(
    gateway: DuckDbGateway, file: Path, tmp_path: Path
) -> None:
    make_table(gateway, "killed")
    append_id = new_id()
    slow = ("--faults", "seed=1,delay_ms=1000", "--connections", "1", "--id", append_id)
    child = begin(gateway.http, "killed", *FINE, *slow, file)
    eventually(lambda: received(gateway.http, append_id) >= 3, "some batches have come")
    child.kill()
    child.wait()
    other = tmp_path / "other.parquet"
    write(other, "another")
    resumed = ("killed", *FINE, "--id", append_id)
    for arguments, says in [
        ((*resumed, other), "digest="),
        (("killed", "--batch-bytes", "10000", "--id", append_id, file), "batch_bytes=10000"),
        ((*resumed, "--unordered", file), "ordered"),
        ((*resumed, "--columns", "n,word", file), "columns"),
    ]:
        ended = append(gateway.http, *arguments)
        assert ended.code == 1, ended.errors
        assert says in ended.errors, ended.errors
        assert status(gateway.http, append_id)["state"] == "open", "what was begun is still there"
    # The same rows under another name are the same.
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(file.read_bytes())
    ended = append(gateway.http, *resumed, moved)
    assert ended.code == 0, ended.errors
    assert sums(gateway, "killed") == ALL and in_order(gateway, "killed")
