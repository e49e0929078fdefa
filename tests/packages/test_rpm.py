"""The rpm: installed, started, upgraded and removed, in a Debian, whose packages rpm's list doesn't have."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.clean_root import NOTICES, PRESENT, UNIT, CleanRoot, Service, packages, use
from harness.paths import gateway_binary

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
    assert root.owner_and_mode("/etc/windrow") == "root:windrow 750"
    # Of all files: sizes, sums, owners and modes.
    assert rpm(root, "--verify", "windrow") == ""
    use(Service(root, tmp_path / "older"))
    assert root.is_secret("/etc/windrow/environment")

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


def test_systemd_is_asked_and_what_it_refuses_stops_nothing(versions: list[Path], root: CleanRoot) -> None:
    root.bring_systemctl()
    older, newer = versions
    rpm(root, "--install", older)
    assert root.asked_of_systemctl() == ["daemon-reload"]
    rpm(root, "--upgrade", newer)
    # The new package's script, then the old one's last.
    assert root.asked_of_systemctl() == ["daemon-reload", "daemon-reload", "try-restart windrow.service"]
    rpm(root, "--erase", "windrow")
    assert root.asked_of_systemctl() == ["disable --now windrow.service", "daemon-reload"]


def test_its_files(versions: list[Path], tmp_path: Path) -> None:
    def said(of: str) -> list[str]:
        command = ["rpm", "--query", of, "--package", versions[-1]]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    # No package's name, which would be Red Hat's alone or SUSE's: libraries by what they are loaded by, programs by their paths.
    symbols = subprocess.run(["objdump", "-p", gateway_binary()], capture_output=True, text=True, check=True).stdout
    libraries = set(re.findall(r"NEEDED +(\S+)", symbols)) - {"libc.so.6"}
    versions_of_glibc = {tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_([\d.]+)", symbols)}
    newest = ".".join(map(str, max(versions_of_glibc)))
    expected = {f"libc.so.6(GLIBC_{newest})(64bit)", *(f"{name}()(64bit)" for name in libraries if not name.startswith("ld-"))}
    programs = {"/bin/sh", "/usr/bin/getent", "/usr/sbin/groupadd", "/usr/sbin/useradd"}
    asked = {line for line in said("--requires") if not line.startswith("rpmlib(")}
    assert asked == expected | programs
    documents = {"LICENSE", NOTICES, f"windrow-{versions[-1].name.split('-')[1]}.cdx.json"}
    assert documents <= {Path(name).name for name in said("--list") if name.startswith("/usr/share/doc/windrow/")}
    [again] = packages("rpm", tmp_path, (PRESENT,))
    assert again.read_bytes() == versions[-1].read_bytes()
