"""`windrow append` against a gateway on DuckDB: files arrive whole and in order, or not at all."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from harness.command_line import append, begin, new_id, received, status
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually

ROWS = 20_000
NULL = "\\N"
# Many small batches, so that something is under way for a while.
FINE = ("--batch-bytes", "8192")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in every format."""
    folder = tmp_path_factory.mktemp("files")
    table = rows()
    pa.parquet.write_table(table.slice(0, ROWS // 2), folder / "a.parquet", row_group_size=3000)
    pa.parquet.write_table(table.slice(ROWS // 2), folder / "b.parquet", row_group_size=3000)
    pa.csv.write_csv(table, folder / "all.csv")
    with pa.ipc.new_file(folder / "all.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    return folder


def rows() -> pa.Table:
    words = pa.array([f"word {n % 11}" for n in range(ROWS)]).dictionary_encode()
    halves = pa.array([None if n % 5 == 0 else n / 2 for n in range(ROWS)])
    return pa.table({"n": pa.array(range(ROWS), pa.int64()), "half": halves, "word": words})


def make_table(on: Endpoint, name: str, check: str = "") -> None:
    on.sql(f"CREATE OR REPLACE TABLE {name} (n BIGINT NOT NULL{check}, half DOUBLE, word VARCHAR)")


def stored(on: Endpoint, name: str) -> str:
    # In the order in which the rows lie in the table.
    return on.sql(f"SELECT n, half, word FROM {name} ORDER BY rowid FORMAT CSV")


def expected() -> str:
    def half(n: int) -> str:
        return NULL if n % 5 == 0 else f"{n / 2:g}"

    return "\n".join(f'{n},{half(n)},"word {n % 11}"' for n in range(ROWS))


def count(on: Endpoint, name: str) -> int:
    return int(on.sql(f"SELECT count(*) FROM {name}"))


@pytest.mark.parametrize("names", [["a.parquet", "b.parquet"], ["all.csv"], ["all.arrow"]])
def test_files_arrive_in_order(gateway: DuckDbGateway, files: Path, names: list[str]) -> None:
    make_table(gateway.http, "arrive")
    ended = append(gateway.http, "arrive", "--json", *FINE, *(files / name for name in names))
    assert ended.code == 0, ended.errors
    assert ended.answer["state"] == "committed" and ended.answer["rows"] == ROWS and ended.answer["atomic"] == "all"
    assert stored(gateway.http, "arrive") == expected()


def test_csv_from_standard_input_with_some_of_the_columns(gateway: DuckDbGateway) -> None:
    gateway.http.sql("CREATE OR REPLACE TABLE piped (n BIGINT, word VARCHAR DEFAULT 'none', day DATE)")
    ended = append(gateway.http, "piped", "--format", "csv", "-", stdin=b"day,n\n2024-02-29,1\n,2\n")
    assert ended.code == 0, ended.errors
    assert gateway.http.sql("SELECT * FROM piped ORDER BY n FORMAT CSV") == '1,"none","2024-02-29"\n2,"none",\\N'


@pytest.mark.parametrize("seed", range(10))
def test_a_bad_network_changes_nothing(gateway: DuckDbGateway, files: Path, seed: int) -> None:
    make_table(gateway.http, "bad")
    faults = f"seed={seed},delay_ms=5,drop=0.1,repeat=0.1,reorder=0.2,cut=0.1"
    ended = append(gateway.http, "bad", *FINE, "--faults", faults, files / "a.parquet", files / "b.parquet")
    assert ended.code == 0, ended.errors
    assert stored(gateway.http, "bad") == expected()


def test_an_append_whose_client_was_killed_is_gone_on_with(gateway: DuckDbGateway, files: Path) -> None:
    make_table(gateway.http, "resumed")
    append_id, source = new_id(), (files / "a.parquet", files / "b.parquet")
    slow = ("--faults", "seed=1,delay_ms=1000", "--connections", "1", "--id", append_id)
    child = begin(gateway.http, "resumed", *FINE, *slow, *source)
    eventually(lambda: received(gateway.http, append_id) >= 3, "some batches have come")
    child.kill()
    child.wait()
    held = received(gateway.http, append_id)
    assert count(gateway.http, "resumed") == 0
    ended = append(gateway.http, "resumed", *FINE, "--json", "--id", append_id, *source)
    assert ended.code == 0, ended.errors
    assert 3 <= held < ended.answer["batches"]
    assert stored(gateway.http, "resumed") == expected()
    again = append(gateway.http, "resumed", *FINE, "--id", append_id, *source)
    assert again.code == 0 and "stored already" in again.errors
    assert count(gateway.http, "resumed") == ROWS


def test_ctrl_c_leaves_nothing(gateway: DuckDbGateway, files: Path) -> None:
    make_table(gateway.http, "interrupted")
    append_id = new_id()
    slow = ("--faults", "seed=1,delay_ms=1000", "--connections", "1", "--id", append_id)
    child = begin(gateway.http, "interrupted", *FINE, *slow, files / "all.csv")
    eventually(lambda: received(gateway.http, append_id) >= 1, "a batch has come")
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert status(gateway.http, append_id)["state"] in ("aborted", "gone")
    assert count(gateway.http, "interrupted") == 0


def test_a_gateway_that_is_killed_breaks_it_off_and_the_same_command_stores_all_of_it(
    tmp_path: Path, files: Path
) -> None:
    gateway = DuckDbGateway(tmp_path, f"duckdb://{tmp_path}/file.db")
    make_table(gateway.http, "killed")
    append_id, source = new_id(), (files / "a.parquet", files / "b.parquet")
    slow = ("--faults", "seed=1,delay_ms=1000", "--connections", "1", "--id", append_id, "--retry-for", "0")
    child = begin(gateway.http, "killed", *FINE, *slow, *source)
    eventually(lambda: received(gateway.http, append_id) >= 3, "some batches have come")
    gateway.kill()
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 3, errors
    assert f"--id {append_id}" in errors.decode()
    gateway.start()
    assert status(gateway.http, append_id)["state"] == "gone"
    assert count(gateway.http, "killed") == 0
    ended = append(gateway.http, "killed", *FINE, "--id", append_id, *source)
    assert ended.code == 0, ended.errors
    assert stored(gateway.http, "killed") == expected()
    assert gateway.stop() == 0


def test_a_row_that_violates_a_check_is_named_and_nothing_is_stored(gateway: DuckDbGateway, files: Path) -> None:
    make_table(gateway.http, "checked", " CHECK (n <> 15000)")
    ended = append(gateway.http, "checked", *FINE, "--json", files / "all.arrow")
    assert ended.code == 1, ended.errors
    assert ended.answer["state"] == "failed" and ended.answer["error"]["code"] == 469
    assert ended.answer["error"]["batch"] is not None and ended.answer["error"]["row"] is not None
    assert count(gateway.http, "checked") == 0


def test_a_bad_line_is_named_and_nothing_is_stored(gateway: DuckDbGateway, tmp_path: Path) -> None:
    make_table(gateway.http, "line")
    path = tmp_path / "bad.csv"
    path.write_text("n,word\n" + "1,a\n" * 30_000 + "x,a\n")
    ended = append(gateway.http, "line", *FINE, path)
    assert ended.code == 1
    assert "bad.csv, line 30002" in ended.errors and "'x'" in ended.errors
    assert count(gateway.http, "line") == 0


@pytest.mark.parametrize("table", ["nowhere", "nowhere.t"])
def test_a_table_that_is_not_there_is_an_error(gateway: DuckDbGateway, files: Path, table: str) -> None:
    for name in ("a.parquet", "all.csv"):
        ended = append(gateway.http, table, files / name)
        assert ended.code == 1, ended.errors
        assert "nowhere" in ended.errors


def test_a_wrong_password_is_refused(gateway: DuckDbGateway, files: Path) -> None:
    ended = append(gateway.http.as_user("reader", "wrong"), "t", files / "a.parquet")
    assert ended.code == 1, ended.errors
    assert "516" in ended.errors and "wrong" not in ended.errors
