"""A journal that somebody damaged, through the gateway: the start says so, repairing keeps what can be read, and that is stored.

Every byte changed and every length cut is in core/log/tests/log/damage.rs. What stands here is that the whole program keeps its word.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.paths import gateway_binary
from harness.process import inherited_environment
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

CONFIG = '[journal]\nsegment_bytes = "64KiB"\nmax_bytes = "4MiB"\n'
# Three files of them.
INSERTS, ROWS_PER_INSERT = 15, 1500


def numbers_of(insert: int) -> list[int]:
    return list(range(insert * 10_000, insert * 10_000 + ROWS_PER_INSERT))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    started = Engine(tmp_path_factory.mktemp("engine"))
    yield started
    started.stop()


@pytest.fixture
def direct(engine: Engine) -> Iterator[Endpoint]:
    make_table(engine.direct)
    yield engine.direct
    engine.direct.sql("DROP TABLE t SYNC")


@pytest.fixture(scope="module")
def left(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory as a gateway leaves it that is killed with acknowledged inserts."""
    gateway = RemoteGateway(tmp_path_factory.mktemp("left"), url(engine), engine.direct, CONFIG)
    make_table(engine.direct)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    for insert in range(INSERTS):
        assert tested.insert(INTO_T, rows(*numbers_of(insert)), **HELD_NOT_WAITING).status == 200
    refused = journal("repair", gateway.data_dir)
    assert refused.returncode == 1 and str(gateway.child.pid) in refused.stderr, "not while a gateway writes there"
    gateway.kill()
    assert ids(engine.direct) == [], "they are held"
    engine.direct.sql("DROP TABLE t SYNC")
    return gateway.data_dir


def url(engine: Engine) -> str:
    return backend_url(TESTER, f"127.0.0.1:{engine.direct.port}")


def journal(what: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), "journal", what, "--data-dir", str(data_dir)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)


def segments(data_dir: Path) -> list[Path]:
    """Those with records, in order."""
    return sorted(path for path in (data_dir / "journal").iterdir() if path.is_file() and held_in(path.read_bytes()))


def held_in(content: bytes) -> set[int]:
    """Which inserts have their rows there, as ClickHouse's Native format writes them."""
    return {insert for insert in range(INSERTS) if struct.pack("<qqq", *numbers_of(insert)[:3]) in content}


def changed(at: Callable[[bytes], int]) -> Callable[[Path], None]:
    def change(segment: Path) -> None:
        content = bytearray(segment.read_bytes())
        content[at(bytes(content))] ^= 1
        segment.write_bytes(content)

    return change


def zeroed(segment: Path) -> None:
    """A page that the disk lost."""
    content = bytearray(segment.read_bytes())
    content[8192:12288] = bytes(4096)
    segment.write_bytes(content)


def cut(segment: Path) -> None:
    content = segment.read_bytes()
    segment.write_bytes(content[: len(content) // 2])


def overwritten(segment: Path) -> None:
    segment.write_text("# somebody's notes\n")


written = lambda content: len(content.rstrip(b"\0"))
# Which segment, what becomes of it, and how many of its inserts are lost at most.
DAMAGES: dict[str, tuple[int, Callable[[Path], None], int]] = {
    "a byte of the head": (0, changed(lambda content: 20), INSERTS),
    "a byte of a record's rows": (0, changed(lambda content: written(content) // 2), 1),
    "a byte of the last record but one": (0, changed(lambda content: written(content) - 15_000), 1),
    "a byte in the middle file": (1, changed(lambda content: written(content) // 3), 1),
    "a page": (1, zeroed, 2),
    "half of a file": (1, cut, INSERTS),
    "a file": (1, overwritten, INSERTS),
    "a byte of the newest file": (2, changed(lambda content: written(content) // 2), 1),
}


@pytest.mark.parametrize(("which", "damage", "most_lost"), DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_damaged_is_told_and_the_rest_stored(
    engine: Engine, direct: Endpoint, left: Path, tmp_path: Path, which: int, damage: Callable[[Path], None], most_lost: int
) -> None:
    data_dir = copied(left, tmp_path)
    damaged = segments(data_dir)[which]
    in_it = held_in(damaged.read_bytes())
    assert 1 < len(in_it) < INSERTS
    damage(damaged)
    as_damaged = damaged.read_bytes()
    refused_with(engine, tmp_path, damaged.name)
    inspected = journal("inspect", data_dir)
    assert inspected.returncode == 1 and damaged.name in inspected.stdout, inspected
    repaired = journal("repair", data_dir)
    assert repaired.returncode == 0 and damaged.name in repaired.stdout, repaired
    assert (data_dir / "journal" / "damaged" / damaged.name).read_bytes() == as_damaged, "it is kept as it was"
    stored = stored_by_a_start(engine, tmp_path, direct)
    assert stored <= set(range(INSERTS))
    lost = set(range(INSERTS)) - stored
    assert lost <= in_it and 1 <= len(lost) <= most_lost, f"{sorted(lost)} of {sorted(in_it)} are lost"


def test_a_file_that_is_gone_is_missed(engine: Engine, left: Path, tmp_path: Path) -> None:
    data_dir = copied(left, tmp_path)
    gone = segments(data_dir)[1]
    gone.unlink()
    refused_with(engine, tmp_path, gone.name)


def test_without_damage_all_are_stored(engine: Engine, direct: Endpoint, left: Path, tmp_path: Path) -> None:
    data_dir = copied(left, tmp_path)
    assert len(segments(data_dir)) >= 3
    assert journal("inspect", data_dir).returncode == 0
    assert stored_by_a_start(engine, tmp_path, direct) == set(range(INSERTS))


def copied(left: Path, folder: Path) -> Path:
    data_dir = folder / "data"
    shutil.copytree(left, data_dir)
    return data_dir


def refused_with(engine: Engine, folder: Path, name: str) -> None:
    command = [str(gateway_binary()), "serve", "--backend", url(engine), "--data-dir", str(folder / "data")]
    ports = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flight", ""]
    ended = subprocess.run([*command, *ports], capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)
    assert ended.returncode == 1 and name in ended.stderr and "windrow journal repair" in ended.stderr, ended
    assert "panicked" not in ended.stderr


def stored_by_a_start(engine: Engine, folder: Path, direct: Endpoint) -> set[int]:
    """Inserts that are there, each whole and once."""
    gateway = RemoteGateway(folder, url(engine), engine.direct, CONFIG)
    last = 10_000 * INSERTS
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    assert tested.insert(INTO_T, rows(last)).status == 200, "all that is left from before has come to its end"
    assert gateway.stop() == 0
    there = ids(direct)
    assert there.pop() == last
    stored = {number // 10_000 for number in there}
    assert there == [number for insert in sorted(stored) for number in numbers_of(insert)]
    return stored
