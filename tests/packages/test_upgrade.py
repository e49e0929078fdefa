"""An upgrade: what earlier releases left on disk, recorded by `record.py`, is taken over by today's gateway and writer.

A recording says itself what has to come of it, so that it stays as it is for ever.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from harness.dead_letters import DeadLetters
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.ordered import Append, native
from harness.paths import ROOT, gateway_binary
from harness.process import inherited_environment
from harness.users import TESTER
from packages.record import RECORDINGS

RELEASED = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
KINDS = ("clickhouse", "duckdb")
LOGS = ("journal", "deduplication", "dead-letters", "appends/log")
# Where a segment's header has the version of its format, and its checksum.
HEADER_BYTES, VERSION_AT, CHECKSUM_AT = 96, 8, 12
WAITING = {"async_insert": 1, "wait_for_async_insert": 1}


def test_every_release_is_recorded() -> None:
    recorded = {path.name.removesuffix(".tar.zst").removeprefix("v") for path in RECORDINGS.iterdir()}
    assert recorded and set(RELEASED) <= recorded, "docs/releasing.md says how a release is recorded"


@dataclass
class Upgraded:
    """Today's gateway on the files of a release."""

    gateway: Gateway
    expected: dict[str, Any]

    @property
    def tested(self) -> Endpoint:
        http = self.gateway.http
        return http if isinstance(self.gateway, DuckDbGateway) else http.as_user(TESTER.name, TESTER.password)

    def letters(self) -> DeadLetters:
        return DeadLetters(self.gateway, "default")

    def append(self, append_id: str) -> Append:
        return Append(self.tested, self.expected["appends"][append_id]["table"], append_id)

    def repeat_all(self) -> None:
        for insert in self.expected["repeats"]:
            reply = self.tested.insert(insert["query"], insert["payload"], **insert["settings"], **WAITING)
            assert reply.status == 200, reply.text

    def all_is_stored(self) -> None:
        for query, rows in self.expected["found"].items():
            eventually(lambda: self.tested.sql(query) == rows, f"{query} finds {rows}")

    def finds(self, queries: dict[str, str]) -> None:
        assert {query: self.tested.sql(query) for query in queries} == queries


def unpacked(recording: str, into: Path) -> dict[str, Any]:
    with tarfile.open(fileobj=io.BytesIO(zstd.decompress((RECORDINGS / recording).read_bytes()))) as tar:
        tar.extractall(into, filter="data")
    return json.loads((into / "expected.json").read_text())


@pytest.fixture(params=[(path.name, kind) for path in sorted(RECORDINGS.iterdir()) for kind in KINDS], ids="-".join)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upgraded]:
    recording, kind = request.param
    expected = unpacked(recording, tmp_path)[kind]
    folder = tmp_path / kind
    gateway = Gateway(folder) if kind == "clickhouse" else DuckDbGateway(folder, f"duckdb://{folder}/database.db")
    yield Upgraded(gateway, expected)
    gateway.stop()


def test_what_a_release_left_is_taken_over(upgraded: Upgraded, tmp_path: Path) -> None:
    # While what was acknowledged is still on its way, and when it is stored.
    upgraded.repeat_all()
    if (tmp_path / "clickhouse" / "written").exists() and not isinstance(upgraded.gateway, DuckDbGateway):
        write_what_is_left(upgraded.tested, tmp_path / "clickhouse" / "written")
    upgraded.all_is_stored()
    upgraded.repeat_all()

    known = list(upgraded.expected["dead_letters"][0])
    listed = [{name: letter[name] for name in known} for letter in upgraded.letters().all()]
    assert listed == upgraded.expected["dead_letters"]

    for append_id, left in upgraded.expected["appends"].items():
        append = upgraded.append(append_id)
        state = eventually(lambda: (now := append.status()["state"]) != "committing" and now, "it is settled")
        # Of one that is not known a gateway before a ClickHouse says no more today.
        assert state in ((left["state"], "unknown") if left["state"] == "gone" else (left["state"],))
    upgraded.finds(upgraded.expected["found"])

    # What today's files say of it all is the same.
    assert upgraded.gateway.stop() == 0
    upgraded.gateway.start()
    upgraded.repeat_all()
    upgraded.finds(upgraded.expected["found"])
    assert [letter["id"] for letter in upgraded.letters().all()] == [letter["id"] for letter in listed]

    upgraded.tested.sql(upgraded.expected["mended_by"])
    ids = [letter["id"] for letter in listed]
    assert upgraded.letters().retry(ids=ids) == {"selected": len(ids), "retried": len(ids), "failed": []}
    for query, rows in upgraded.expected["after_retry"].items():
        eventually(lambda: upgraded.tested.sql(query) == rows, "the rows of the dead letters are there")
    assert upgraded.letters().all() == []

    for append_id, left in upgraded.expected["appends"].items():
        append = upgraded.append(append_id)
        # One that is gone is sent again, whole, under its name.
        for number, values in enumerate(left.get("payloads", [])):
            assert append.put(number, native(a=values)).status == 200
        committed = append.commit(len(left.get("payloads", [])) or left["batches"])
        assert committed.status == 200 and json.loads(committed.body)["rows"] == left["rows"], committed


def write_what_is_left(tested: Endpoint, folder: Path) -> None:
    """A program that starts again on the folder of one that was killed sends what that had taken."""
    import windrow

    where = {"host": tested.host, "port": tested.port, "username": tested.user, "password": tested.password}
    with windrow.get_client(**where) as client, client.writer("written", ["n", "text"], buffer=f"disk:{folder}") as writer:
        eventually(lambda: writer.statistics().batches_in_flight == 0, "nothing is left to be sent")


@pytest.mark.parametrize("log", LOGS)
def test_files_of_a_later_version_are_refused_and_stay_as_they_are(tmp_path: Path, log: str) -> None:
    """Each log by its name, with what is to be done; also by the command that repairs."""
    unpacked(sorted(path.name for path in RECORDINGS.iterdir())[-1], tmp_path)
    data_dir = tmp_path / "clickhouse" / "data"
    segment = max((data_dir / log).glob("*.segment"))
    content = bytearray(segment.read_bytes())
    later = int.from_bytes(content[VERSION_AT:CHECKSUM_AT], "little") + 1
    content[VERSION_AT:CHECKSUM_AT] = later.to_bytes(4, "little")
    checksum = zlib.crc32(content[CHECKSUM_AT + 4 : HEADER_BYTES], zlib.crc32(content[:CHECKSUM_AT]))
    content[CHECKSUM_AT : CHECKSUM_AT + 4] = checksum.to_bytes(4, "little")
    segment.write_bytes(content)
    ports = [argument for port in ("--http", "--admin", "--native", "--flight") for argument in (port, "")]
    ports[1], ports[3] = "127.0.0.1:0", "127.0.0.1:0"
    started = windrow_command("serve", "--backend", "http://127.0.0.1:1", "--data-dir", str(data_dir), *ports)
    assert started.returncode == 1 and "panicked" not in started.stderr, started
    assert segment.name in started.stderr and f"of format version {later}" in started.stderr, started
    assert "Start the Windrow that wrote it" in started.stderr
    if log in ("journal", "deduplication", "dead-letters"):
        for command in ("inspect", "repair"):
            refused = windrow_command("journal", command, log, "--data-dir", str(data_dir))
            assert refused.returncode == 1 and f"of format version {later}" in refused.stdout + refused.stderr, refused
    assert segment.read_bytes() == content, "nothing was changed"


def windrow_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)
