"""The wheels: what they promise to run on, and what becomes of them in an empty environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.clean_root import NOTICES
from harness.paths import ROOT, gateway_binary
from harness.process import inherited_environment
from harness.wheels import Installation, Serving, client_wheel, documented_glibc, in_version, is_ignored, package, program_of, promised_glibc

OLDER = "0.0.1"
NAMES = ("windrow-", "windrow_server-", "windrow_clickhouse-")
CREATE = "CREATE TABLE clicks (page String, visitor UInt64) ORDER BY visitor"
INSERT = "INSERT INTO clicks VALUES ('/', 1), ('/docs', 2)"
SHORT = ("--for", "2", "--probes", "40", "--plain", "--no-browser")
CLIENT = """
import windrow
with windrow.get_client(host={host!r}, port={port}) as client:
    client.insert("clicks", [["/of the client", 3]], column_names=["page", "visitor"])
    print(client.query("SELECT page FROM clicks WHERE visitor = 3").result_rows)
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All wheels, and those of the project itself also in an older version."""
    folder = tmp_path_factory.mktemp("wheels")
    client = client_wheel()
    (folder / client.name).write_bytes(client.read_bytes())
    in_version(client, OLDER, folder)
    package("server-wheel", folder)
    package("server-wheel", folder, version=OLDER)
    # The last, as it is large: each time the sums of all that is there are taken.
    package("clickhouse-wheel", folder)
    yield folder
    # pytest keeps folders of earlier runs, and these are large.
    shutil.rmtree(folder)


def newest(dist: Path, name: str) -> Path:
    [found] = [path for path in dist.glob(f"{name}*.whl") if f"-{OLDER}-" not in path.name]
    return found


@pytest.fixture
def installation(dist: Path, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path / "env", dist)
    yield installation
    shutil.rmtree(installation.folder)


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    running: list[Serving] = []

    def start(*arguments: object) -> Serving:
        running.append(Serving(*arguments))
        return running[-1]

    yield start
    for serving in running:
        serving.stop()


def found_program(name: str) -> str:
    found = shutil.which(name)
    assert found, name
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_promises_no_more_than_it_holds(dist: Path, name: str) -> None:
    wheel = newest(dist, name)
    checked = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True, check=False)
    told = " ".join(shown.stdout.split())
    fits = re.search(r'the following platform tag: "manylinux_2_(\d+)_', told)
    assert shown.returncode == 0 and fits, told + shown.stderr
    assert "external shared libraries are required" not in told, told
    promised = re.search(r"manylinux_2_(\d+)_", wheel.name)
    # pip's own is for this machine alone, which promises nothing.
    assert promised is None or int(promised[1]) >= int(fits[1])
    assert promised or name == "windrow-"


def test_the_wheels_of_a_release_run_with_the_glibc_that_the_documents_name(dist: Path) -> None:
    for name in NAMES[1:]:
        tag = re.search(r"manylinux_(\d+)_(\d+)_", newest(dist, name).name)
        assert tag and documented_glibc() <= (int(tag[1]), int(tag[2])) <= promised_glibc(gateway_binary()), name


def test_licences_and_the_bill_of_materials_go_along(dist: Path) -> None:
    with zipfile.ZipFile(newest(dist, "windrow_server-")) as wheel:
        files = {Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if "/licenses/" in name or "/sboms/" in name}
    [bill] = (name for name in files if name.endswith(".cdx.json"))
    assert files.keys() == {"LICENSE", "LICENSE.duckdb", NOTICES, bill}
    assert "Windrow is made with these" in files[NOTICES] and json.loads(files[bill])["components"]


def test_the_sdist_has_all_that_it_is_built_from(tmp_path: Path) -> None:
    environment = {**inherited_environment(), "DIST": str(tmp_path), "MATURIN": str(Path(sys.executable).with_name("maturin"))}
    subprocess.run([ROOT / "scripts" / "packages" / "wheel", "--sdist"], env=environment, check=True, capture_output=True)
    [sdist] = tmp_path.glob("windrow-*.tar.gz")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(sdist)], check=True, capture_output=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = (path for path in tmp_path.iterdir() if path.is_dir())
    # What git doesn't have, and what makes it.
    assert (source / "windrow" / "_sync" / "client.py").exists()
    assert (source / "tools" / "async_to_sync.py").exists()
    manifest = source / "python" / "Cargo.toml"
    read = subprocess.run(
        ["cargo", "metadata", "--offline", "--format-version", "1", "--manifest-path", str(manifest)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    ours = {each["name"]: each["manifest_path"] for each in json.loads(read.stdout)["packages"] if each["source"] is None}
    assert {"windrow-python", "windrow-columns", "windrow-writer"} <= set(ours)
    assert all(Path(path).is_relative_to(source) for path in ours.values()), ours


def test_installed_upgraded_and_removed(installation: Installation, tmp_path: Path, serve: Callable[..., Serving]) -> None:
    empty = installation.files()
    installation.install(f"windrow[server]=={OLDER}", f"windrow-server=={OLDER}")
    data = tmp_path / "data"
    served = serve(installation, data)
    # Python is gone; what it ignores is not ignored.
    assert program_of(served.child.pid) == next(installation.folder.rglob("windrow_server/windrow"))
    assert not is_ignored(served.child.pid, signal.SIGXFSZ)
    served.http.sql(CREATE)
    served.http.sql(INSERT)
    assert served.stop() == 0, served.child.log()[-3000:]

    installation.install("--upgrade", "windrow[server]", "windrow-server")
    shown = installation.run("windrow", "--version", folder=tmp_path)
    assert shown.returncode == 0 and shown.stdout.startswith("windrow "), shown.stderr
    assert len(list(installation.folder.rglob("windrow*.dist-info"))) == len(NAMES)
    assert list(installation.folder.rglob(f"windrow*-{OLDER}.dist-info")) == []
    upgraded = serve(installation, data)
    assert upgraded.http.sql("SELECT page, visitor FROM clicks ORDER BY visitor") == "/\t1\n/docs\t2"
    client = CLIENT.format(host=upgraded.http.host, port=upgraded.http.port)
    inserted = installation.run("python", "-c", client, folder=tmp_path)
    assert inserted.stdout == "[('/of the client',)]\n", inserted.stderr
    assert upgraded.stop() == 0

    kept = {path: path.stat().st_size for path in data.rglob("*") if path.is_file()}
    installation.uninstall("windrow", "windrow-server", "windrow-clickhouse")
    assert installation.files() == empty
    assert {path: path.stat().st_size for path in data.rglob("*") if path.is_file()} == kept


def test_without_a_clickhouse_rows_go_into_duckdb_and_stay_there(
    installation: Installation, tmp_path: Path, serve: Callable[..., Serving]
) -> None:
    installation.install("--no-deps", "windrow-server")
    named = serve(installation, tmp_path / "named", "--backend", f"duckdb://{tmp_path}/named.duckdb")
    assert "rows are stored in DuckDB" not in named.child.log()
    assert named.stop() == 0

    data = tmp_path / "data"
    first = serve(installation, data)
    assert f"rows are stored in DuckDB, in duckdb://{data}/rows.duckdb: there is no ClickHouse to embed" in first.child.log()
    first.http.sql("CREATE TABLE clicks (page VARCHAR, visitor UBIGINT)")
    first.http.sql(INSERT)
    assert first.http.sql("SELECT count(*) FROM clicks") == "2"
    assert first.stop() == 0
    shown = installation.run("windrow", "demo", *SHORT, folder=tmp_path)
    assert shown.returncode == 0 and "rows are stored in DuckDB" in shown.stdout, shown.stdout + shown.stderr
    # A password that DuckDB would not ask for is no reason to leave the port open.
    wanted = tmp_path / "wanted.toml"
    wanted.write_text('embedded.default_password = "x"\n')
    refused = installation.run(
        "windrow-server", "serve", "--config", str(wanted), "--data-dir", "other", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
        "--flight", "", folder=tmp_path,
    )  # fmt: skip
    assert refused.returncode == 1 and "pip install windrow-clickhouse" in refused.stderr

    installation.install("windrow-server")
    again = serve(installation, data)
    assert again.http.sql("SELECT count(*) FROM clicks") == "2"
    assert "they were there before there was a ClickHouse to embed" in again.child.log()
    new = serve(installation, tmp_path / "new")
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", new.http.sql("SELECT version()"))
    assert again.stop() == new.stop() == 0


def test_exit_codes_are_the_programs_own(installation: Installation, tmp_path: Path) -> None:
    installation.install("--no-deps", "windrow-server")
    assert installation.run("windrow-server", "no-such-command", folder=tmp_path).returncode == 2
    assert installation.run("windrow", "status", "--admin", "127.0.0.1:1", folder=tmp_path).returncode == 1
    helped = installation.run("python", "-m", "windrow_server", "--help", folder=tmp_path)
    assert helped.returncode == 0 and "Usage: windrow" in helped.stdout


def test_one_command_and_python_alone_show_the_demo(dist: Path, tmp_path: Path) -> None:
    """As `uvx windrow-server demo`, of wheels in a folder instead of a registry's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    # uv's own way to start what it has installed.
    for name in ("realpath", "dirname"):
        (programs / name).symlink_to(found_program(name))
    environment = {"PATH": str(programs), "HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache"), "LANG": "C.UTF-8"}
    uv = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--no-config", "--no-index", "--find-links", str(dist), "--no-managed-python"]
    ran = subprocess.run([*uv, "windrow-server", "demo", *SHORT], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "found in ClickHouse, by id, both ways." in ran.stdout
    shutil.rmtree(tmp_path / "cache")
