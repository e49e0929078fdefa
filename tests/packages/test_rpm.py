"""The rpm: installed, started, upgraded and removed, in a Debian, whose C library has the name that rpm doesn't ask for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.clean_root import PRESENT, UNIT, CleanRoot, Service, packages, use

CONFIG = "etc/windrow/windrow.toml"
DATA = "var/lib/windrow/data.duckdb"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return packages("rpm", tmp_path_factory.mktemp("rpm"))


def rpm(root: CleanRoot, *arguments: str | Path) -> str:
    """rpm of this machine on the other root; its scripts run in there. Debian's packages are not in rpm's list of packages."""
    without = [] if arguments[0] == "--query" else ["--nodeps"]
    command = ["rpm", f"--root={root.path}", *without, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_its_life(versions: list[Path], root: CleanRoot, tmp_path: Path) -> None:
    older, newer = versions
    assert "systemctl enable --now windrow" in rpm(root, "--install", older)
    assert root.owner_and_mode(f"/{CONFIG}") == "root:windrow 640"
    # Of all files: sizes, sums, owners and modes.
    assert rpm(root, "--verify", "windrow") == ""
    use(Service(root, tmp_path / "older"))

    with (root.path / CONFIG).open("a") as config:
        config.write("# mine\n")
    rpm(root, "--upgrade", newer)
    assert rpm(root, "--query", "--queryformat=%{VERSION}", "windrow") == newer.name.split("-")[1]
    assert (root.path / CONFIG).read_text().endswith("# mine\n") and root.owner_and_mode(f"/{CONFIG}") == "root:windrow 640"
    service = Service(root, tmp_path / "newer")
    use(service)
    service.start()
    assert service.rows() == ["1", "2"]
    assert service.stop() == 0

    rpm(root, "--erase", "windrow")
    assert not (root.path / "usr/bin/windrow").exists() and not (root.path / UNIT).exists()
    assert not (root.path / CONFIG).exists() and (root.path / f"{CONFIG}.rpmsave").exists()
    assert (root.path / DATA).exists()


def test_its_files(versions: list[Path], tmp_path: Path) -> None:
    asked = subprocess.run(["rpm", "--query", "--requires", "--package", versions[-1]], capture_output=True, text=True, check=True)
    assert {"glibc >= 2.34", "libgcc", "shadow-utils"} <= set(asked.stdout.splitlines())
    [again] = packages("rpm", tmp_path, (PRESENT,))
    assert again.read_bytes() == versions[-1].read_bytes()
