"""The tar.gz and its install script, and what all packages have in common: the program and the unit file."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clean_root import NOTICES, PRESENT, UNIT, CleanRoot, Service, packages, use
from harness.paths import ROOT, gateway_binary
from harness.wheels import is_portable, promised_glibc

UNIT_FILE = ROOT / "deploy/linux/windrow.service"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tar")
    packages("tar", made)
    return made


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_its_life(folder: Path, root: CleanRoot, tmp_path: Path) -> None:
    dist = root.path / "tmp/dist"
    shutil.copytree(folder, dist)
    install = ("sh", "/tmp/dist/install.sh", "--prefix", "/usr")
    refused = root.run(*install, "--from", "/tmp/dist")
    assert refused.returncode == 1 and "--version says which one" in refused.stderr
    assert "is installed in /usr/bin" in root.succeed(*install, "--from", "/tmp/dist", "--version", "0.0.9")
    # What the packages do beside, docs/deployment.md says to those who install this one.
    root.succeed("groupadd", "--system", "windrow")
    root.succeed("useradd", "--system", "--gid", "windrow", "windrow")
    root.succeed("install", "-D", "/usr/share/doc/windrow/windrow.service", f"/{UNIT}")
    root.succeed("install", "-d", "/etc/windrow")
    (root.path / "etc/windrow/windrow.toml").write_text('data_dir = "/var/lib/windrow/data"\nflight.listen = ""\n')
    use(Service(root, tmp_path / "older"))

    next(dist.glob("windrow-0.0.9-*")).unlink()
    root.succeed(*install, "--from", "/tmp/dist", "--version", version())
    service = Service(root, tmp_path / "newer")
    use(service)
    service.start()
    assert service.rows() == ["1", "2"]
    assert service.stop() == 0

    root.succeed(*install, "--uninstall")
    assert not (root.path / "usr/bin/windrow").exists() and not (root.path / "usr/share/doc/windrow").exists()
    assert (root.path / "var/lib/windrow/data.duckdb").exists()
    assert root.run(*install, "--uninstall").returncode == 1


def version() -> str:
    return re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def install(prefix: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["sh", ROOT / "deploy/linux/install.sh", "--prefix", prefix, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_it_is_fetched_from_a_url(address: str, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    assert "has no SHA256SUMS" in install(prefix, "--from", f"{address}/elsewhere").stderr
    assert "has no tar.gz of version 7" in install(prefix, "--from", address, "--version", "7").stderr
    done = install(prefix, "--from", address, "--version", version())
    assert done.returncode == 0, done.stderr
    assert f"windrow {version()} is installed" in done.stdout and "is not in PATH" in done.stdout
    assert (prefix / "share/doc/windrow/LICENSE").exists()


@pytest.mark.parametrize("harm", ["a byte", "its end"])
def test_what_was_changed_is_refused(harm: str, folder: Path, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    shutil.copytree(folder, dist)
    package = next(dist.glob(f"windrow-{version()}-*"))
    bytes_of_it = bytearray(package.read_bytes())
    bytes_of_it[len(bytes_of_it) // 2] ^= 1
    package.write_bytes(bytes_of_it if harm == "a byte" else bytes_of_it[: len(bytes_of_it) // 2])
    prefix = tmp_path / "prefix"
    refused = install(prefix, "--from", dist, "--version", version())
    assert refused.returncode == 1 and "is not what SHA256SUMS says: nothing was installed" in refused.stderr
    assert not prefix.exists()


def test_its_files(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(next(folder.glob(f"windrow-{version()}-*"))) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted((member.name for member in members), key=lambda name: name.split("/"))
    assert {(member.uid, member.gid, member.mtime) for member in members} == {(0, 0, members[0].mtime)}
    [again] = packages("tar", tmp_path, (PRESENT,))
    assert again.read_bytes() == (folder / again.name).read_bytes()


def test_notices_and_the_bill_of_materials_go_along_and_are_made_anew(tmp_path: Path) -> None:
    bill = f"windrow-{version()}.cdx.json"
    for name in (NOTICES, bill):
        (tmp_path / name).write_text("made before")
    packages("tar", tmp_path, (PRESENT,))
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        papers = [member for member in archive if member.name.endswith((".txt", ".json", "LICENSE"))]
        texts = {Path(member.name).name: archive.extractfile(member).read().decode() for member in papers}
    assert texts.keys() == {"LICENSE", NOTICES, bill}
    assert "Windrow is made with these" in texts[NOTICES] and json.loads(texts[bill])["components"]
    sums = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(sums.stdout.splitlines()) == len(list(tmp_path.iterdir())) - 1


def test_the_program_runs_wherever_glibc_is_new_enough() -> None:
    symbols = subprocess.run(["objdump", "-T", gateway_binary()], capture_output=True, text=True, check=True).stdout
    needed = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", symbols)}
    assert max(needed) <= promised_glibc(gateway_binary())
    headers = subprocess.run(["objdump", "-p", gateway_binary()], capture_output=True, text=True, check=True).stdout
    libraries = {re.sub(r"\.so.*", "", name) for name in re.findall(r"NEEDED +(\S+)", headers)}
    # In older versions the C library is in several files. The compiler's own is in what is released.
    of_c = {"libc", "libm", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64"}
    assert libraries - of_c == (set() if is_portable(gateway_binary()) else {"libgcc_s"})


def test_the_service_may_do_little() -> None:
    ended = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", UNIT_FILE], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_systemd_knows_all_of_the_unit(root: CleanRoot) -> None:
    """With the program at its place."""
    shutil.copy(gateway_binary(), root.path / "usr/bin/windrow")
    (root.path / UNIT).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(UNIT_FILE, root.path / UNIT)
    command = ["systemd-analyze", "verify", "--recursive-errors=no", f"--root={root.path}", "windrow.service"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_scripts_are_plain_posix() -> None:
    scripts = [ROOT / "deploy/linux/install.sh", *(ROOT / "deploy/linux/deb").glob("p*")]
    scripts += [ROOT / "scripts" / name for name in ("package", "portable", "release-check", "deny")]
    kinds = [ROOT / "scripts/packages" / name for name in ("tar", "deb", "rpm", "tree.sh", "build-env.sh")]
    ended = subprocess.run(["shellcheck", "--exclude=SC1091", *scripts, *kinds], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
