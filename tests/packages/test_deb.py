"""The Debian package: installed into a fresh Debian, started, upgraded, removed, purged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.clean_root import NOTICES, PRESENT, UNIT, CleanRoot, Service, packages, use
from harness.paths import gateway_binary

CONFIG = "etc/windrow/windrow.toml"
DATA = "var/lib/windrow/data.duckdb"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return packages("deb", tmp_path_factory.mktemp("deb"))


def test_its_life(versions: list[Path], root: CleanRoot, tmp_path: Path) -> None:
    older, newer = map(root.take, versions)
    said = root.run("dpkg", "--install", older)
    assert said.returncode == 0, said.stderr
    assert "systemctl enable --now windrow" in said.stderr
    assert root.owner_and_mode(f"/{CONFIG}") == "root:windrow 640"
    assert root.owner_and_mode("/etc/windrow") == "root:windrow 750"
    use(Service(root, tmp_path / "older"))
    assert root.is_secret("/etc/windrow/environment")
    assert root.owner_and_mode(f"/{DATA}").startswith("windrow:windrow 6")
    assert root.owner_and_mode("/var/lib/windrow") == "windrow:windrow 700"

    # What the user wrote outlives the upgrade, and so do rows.
    with (root.path / CONFIG).open("a") as config:
        config.write("# mine\n")
    root.succeed("dpkg", "--install", newer)
    assert root.succeed("dpkg-query", "--show", "--showformat=${Version}", "windrow") == newer.split("_")[1]
    assert (root.path / CONFIG).read_text().endswith("# mine\n") and root.owner_and_mode(f"/{CONFIG}") == "root:windrow 640"
    service = Service(root, tmp_path / "newer")
    use(service)
    service.start()
    assert service.rows() == ["1", "2"]
    assert service.stop() == 0

    root.succeed("dpkg", "--remove", "windrow")
    assert not (root.path / "usr/bin/windrow").exists() and not (root.path / UNIT).exists()
    assert (root.path / CONFIG).exists() and (root.path / DATA).exists()
    # Nobody is there to be asked: data stays.
    root.succeed("dpkg", "--purge", "windrow")
    assert not (root.path / "etc/windrow").exists() and (root.path / DATA).exists()

    # The next one finds what the first left. This time it was told to take it along.
    root.succeed("dpkg", "--install", newer)
    again = Service(root, tmp_path / "again")
    assert again.rows() == ["1", "2"]
    assert again.stop() == 0
    root.succeed("debconf-set-selections", stdin="windrow windrow/purge-data boolean true\n")
    root.succeed("dpkg", "--purge", "windrow")
    assert not (root.path / "var/lib/windrow").exists()
    assert "windrow" not in root.succeed("debconf-show", "windrow")


def test_systemd_is_asked_and_what_it_refuses_stops_nothing(versions: list[Path], root: CleanRoot) -> None:
    root.bring_systemctl()
    older, newer = map(root.take, versions)
    root.succeed("dpkg", "--install", older)
    assert root.asked_of_systemctl() == ["daemon-reload"]
    root.succeed("dpkg", "--install", newer)
    assert root.asked_of_systemctl() == ["daemon-reload", "try-restart windrow.service"]
    root.succeed("dpkg", "--remove", "windrow")
    assert root.asked_of_systemctl() == ["disable --now windrow.service", "daemon-reload"]
    root.succeed("dpkg", "--purge", "windrow")


def field(package: Path, name: str) -> str:
    return subprocess.run(["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True).stdout.strip()


def test_its_files(versions: list[Path], tmp_path: Path) -> None:
    listed = subprocess.run(["dpkg-deb", "--contents", versions[-1]], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in listed.splitlines()]
    assert {owner for _, owner, *_ in lines} == {"root/root"}
    version = versions[-1].name.split("_")[1]
    documents = {"copyright", NOTICES, f"windrow-{version}.cdx.json"}
    assert documents <= {Path(name).name for *_, name in lines if name.startswith("./usr/share/doc/windrow/")}
    # What files take, whatever folders take where the package is built.
    kibibytes = sum(-(-int(size) // 1024) for mode, _, size, *_ in lines if mode.startswith("-"))
    assert int(field(versions[-1], "Installed-Size")) == kibibytes
    linked = subprocess.run(["objdump", "-p", gateway_binary()], capture_output=True, text=True, check=True).stdout
    assert ("libgcc-s1" in field(versions[-1], "Depends")) == ("libgcc_s.so" in linked)
    # The same commit makes the same bytes.
    [again] = packages("deb", tmp_path, (PRESENT,))
    assert again.read_bytes() == versions[-1].read_bytes()
