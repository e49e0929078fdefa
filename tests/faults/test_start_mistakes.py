"""Mistakes that people make when they start Windrow: it ends at once, and one sentence names the setting and what to do.

A second gateway on a data directory is in async_inserts/test_durability.py, a damaged journal in test_damaged_journal.py.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.certificate import made_in
from harness.gateway import engine_environment
from harness.paths import gateway_binary
from harness.ports import port_of_nobody
from harness.process import inherited_environment

PORTS = ("--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flight", "127.0.0.1:0")
# Nobody is asked before all of the settings are right.
BACKEND = ("--backend", "http://127.0.0.1:1")


@dataclass(frozen=True)
class Mistake:
    """What stands in braces is a name of `Place`."""

    flags: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    settings: str = ""
    environment: dict[str, str] = field(default_factory=dict)


TLS = "[http]\ntls_certificate = '{}'\ntls_key = '{}'\n"
PAIR = ("`http.tls_certificate` and `http.tls_key`",)
MISTAKES = {
    "data directory is a file": Mistake(("--data-dir", "{file}"), ("can't be {file}", "a file is in its place", "`data_dir`")),
    "data directory below a file": Mistake(("--data-dir", "{file}/data"), ("{file}/data", "a file is in its place", "`data_dir`")),
    "data directory in a read-only place": Mistake(("--data-dir", "{read_only}/data"), ("{read_only}/data", "`data_dir`")),
    "data directory is read-only": Mistake(("--data-dir", "{read_only}"), ("{read_only}", "`data_dir`")),
    "data directory without a name": Mistake(("--data-dir", ""), ("--data-dir", "expected a path")),
    "native port without scheme": Mistake(
        ("--backend", "localhost:9000"), ("--backend", "9000 is the port of the native protocol", "did you mean http://localhost:8123?")
    ),
    "no scheme": Mistake(("--backend", "db.example:8123"), ("--backend", "did you mean http://db.example:8123?")),
    "no scheme, with a password": Mistake(("--backend", "u:geheim@db:8123"), ("--backend", "did you mean http://user:password@db:8123?")),
    "the native client's scheme": Mistake(("--backend", "clickhouse://db:9000/d"), ("--backend", "did you mean http://db:8123?")),
    "no port": Mistake(("--backend", "http://db:http"), ("--backend", "port must be a number")),
    "path in the backend": Mistake(("--backend", "http://db:8123/default"), ("--backend", "without path or parameters")),
    "data port is taken": Mistake(("--http", "{taken}"), ("{taken} is taken by another program", "`http.listen`")),
    "admin port is taken": Mistake(("--admin", "{taken}"), ("{taken} is taken by another program", "`admin.listen`")),
    "port of Flight is taken": Mistake(("--flight", "{taken}"), ("{taken} is taken by another program", "`flight.listen`")),
    "another machine's address": Mistake(("--http", "192.0.2.1:8123"), ("cannot listen on 192.0.2.1:8123", "choose another `http.listen`")),
    "port alone": Mistake(("--http", "8123"), ("--http", "`127.0.0.1:8123`")),
    "no settings file": Mistake(("--config", "{folder}/none.toml"), ("none.toml", "correct --config")),
    "folder as settings file": Mistake(("--config", "{folder}"), ("{folder}", "correct --config")),
    "settings are no TOML": Mistake(settings="[http\n", says=("windrow.toml line 1 is not valid TOML",)),
    "unknown key": Mistake(settings="[http]\nmax_conections = 1\n", says=("windrow.toml line 2", "did you mean `max_connections`?")),
    "unknown section": Mistake(settings="[kept]\nx = 1\n", says=("windrow.toml line 2", "`windrow config` lists the known ones")),
    "unknown variable": Mistake(environment={"WINDROW_HTTP_LISTN": "x"}, says=("WINDROW_HTTP_LISTN", "did you mean `WINDROW_HTTP_LISTEN`?")),
    "value of the wrong type": Mistake(settings="[http]\nmax_connections = 'many'\n", says=("windrow.toml line 2", "from 1 to 1000000")),
    "user without a password": Mistake(settings="[[embedded.users]]\nname = 'joe'\n", says=("windrow.toml line 1", "needs the key `password`")),
    "no certificate": Mistake(settings=TLS.format("{folder}/none.pem", "{key}"), says=("{folder}/none.pem", *PAIR)),
    "no key": Mistake(settings=TLS.format("{cert}", "{folder}/none.pem"), says=("{folder}/none.pem", *PAIR)),
    "another certificate's key": Mistake(
        settings=TLS.format("{cert}", "{other_key}"), says=("{other_key} is not the key of the certificate in {cert}", *PAIR)
    ),
    "certificate and key in each other's place": Mistake(settings=TLS.format("{key}", "{cert}"), says=("{key} holds no certificate", *PAIR)),
    "certificate without a key": Mistake(settings="[http]\ntls_certificate = '{cert}'\n", says=("`http.tls_key` is not set",)),
    "no authorities": Mistake(
        ("--backend", "https://127.0.0.1:1"), ("{file} holds no certificate", "`backend_tls.ca_file`"), "[backend_tls]\nca_file = '{file}'\n"
    ),
    "no library of DuckDB": Mistake(
        ("--backend", "duckdb::memory:"), ("{folder}/none.so", "`duckdb.library`"), environment={"WINDROW_DUCKDB_LIBRARY": "{folder}/none.so"}
    ),
    "no folder for DuckDB": Mistake(("--backend", "duckdb://{folder}/none/x.db"), ("{folder}/none/x.db", "folder has to be there")),
    "not DuckDB's file": Mistake(("--backend", "duckdb://{text}"), ("{text}", "Name a file of DuckDB's in `backend`")),
    "no engine": Mistake(
        ("--backend", "embedded"), ("{folder}/none.so", "embedded.engine", "leave it out"), environment={"WINDROW_EMBEDDED_ENGINE": "{folder}/none.so"}
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("mistakes")
    for name in ("one", "other", "read_only"):
        (folder / name).mkdir()
    cert, key = made_in(folder / "one")
    _, other_key = made_in(folder / "other")
    (folder / "file").touch()
    (folder / "text").write_text("not what DuckDB writes\n" * 1000)
    names = {"folder": folder, "cert": cert, "key": key, "other_key": other_key, "file": folder / "file", "text": folder / "text"}
    read_only, is_mounted = made_read_only(folder / "read_only")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        names |= {"read_only": read_only, "taken": f"127.0.0.1:{taken.getsockname()[1]}"}
        yield {name: str(value) for name, value in names.items()}
    if is_mounted:
        subprocess.run(["umount", str(read_only)], check=True)


def made_read_only(folder: Path) -> tuple[Path, bool]:
    """Permissions don't hold root back, so that root gets a file system that is read-only; where it may mount none, a place in which
    the kernel makes nothing for anybody."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        return folder, False
    command = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(folder)]
    is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    return (folder, True) if is_mounted else (Path("/proc/self"), False)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told(place: dict[str, str], mistake: Mistake, tmp_path: Path) -> None:
    filled = lambda text: text.format_map(place)
    config = tmp_path / "windrow.toml"
    config.write_text(filled(mistake.settings))
    defaults = ("--config", str(config), "--data-dir", str(tmp_path / "data"), *BACKEND, *PORTS)
    given = tuple(map(filled, mistake.flags))
    # A flag may be given once.
    kept = (pair for pair in zip(defaults[::2], defaults[1::2]) if pair[0] not in given)
    environment = {**inherited_environment(), **engine_environment(), **{name: filled(value) for name, value in mistake.environment.items()}}
    command = [str(gateway_binary()), "serve", *given, *(part for pair in kept for part in pair)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert ended.returncode == 1, ended
    assert ended.stderr.startswith("windrow: ") and len(ended.stderr.splitlines()) == 1, ended.stderr
    for words in map(filled, mistake.says):
        assert words in ended.stderr, f"{words!r} is not in {ended.stderr}"
    assert "geheim" not in ended.stderr and ended.stdout == ""


def test_too_few_open_files_are_told(tmp_path: Path) -> None:
    serve = [str(gateway_binary()), "serve", "--data-dir", str(tmp_path / "data"), *BACKEND, *PORTS]
    command = ["sh", "-c", 'ulimit -n 8 && exec "$@"', "sh", *serve]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)
    assert ended.returncode == 1, ended
    assert ended.stderr == "windrow: only 8 files may be open, and Windrow needs 32 at least: raise `ulimit -n`\n"


APPENDS = {
    "no scheme": ("db:8123", "http://host:8123"),
    "path": ("http://db:8123/default", "no path"),
    "native protocol": ("native://db:9000", "http://host:8123"),
}


@pytest.mark.parametrize(("to", "says"), APPENDS.values(), ids=APPENDS.keys())
def test_an_append_to_a_wrong_address_is_told(to: str, says: str, tmp_path: Path) -> None:
    said = appended(to, tmp_path)
    assert said.startswith("windrow: --to: ") and says in said and len(said.splitlines()) == 1, said


def test_an_append_to_nobody_is_told(tmp_path: Path) -> None:
    with port_of_nobody() as port:
        said = appended(f"http://127.0.0.1:{port}", tmp_path, "--retry-for", "0")
    assert "connection refused" in said and "is the gateway running there?" in said, said


def appended(to: str, folder: Path, *more: str) -> str:
    (folder / "rows.csv").write_text("a\n1\n")
    command = [str(gateway_binary()), "append", "--to", to, "--table", "t", "--quiet", *more, str(folder / "rows.csv")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)
    assert ended.returncode not in (0, -6), ended
    assert "panicked" not in ended.stderr
    return ended.stderr
