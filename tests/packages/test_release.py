"""`scripts/release`, in a copy of what is committed: the version stands in one place, and everything follows it. And what
`scripts/release-check` leaves in dist/, with scripts that take no time in place of those that build and test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.paths import ROOT

NEW = "98.7.6"
# Scripts that take long, and what stands for them.
QUICK = {
    "tidy": "",
    "deny": "",
    "setup": "",
    "portable": "echo /a/program",
    "python-package": "echo /a/client",
    # What it writes can depend on the folder that it is in.
    "package": 'mkdir -p "$DIST"\n{content} >"$DIST/made"\n(cd "$DIST" && sha256sum * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)',
}


def run(where: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    cloned = run(tmp_path, "git", "clone", "--quiet", "--shared", str(ROOT), "copy")
    assert cloned.returncode == 0, cloned.stderr
    return tmp_path / "copy"


def test_a_version_is_set_everywhere_and_the_changelog_is_cut(copy: Path) -> None:
    unreleased = (copy / "CHANGELOG.md").read_text().split("## [Unreleased]\n")[1]
    if not re.split(r"^## \[", unreleased, flags=re.MULTILINE)[0].strip():
        (copy / "CHANGELOG.md").write_text((copy / "CHANGELOG.md").read_text().replace("[Unreleased]\n", "[Unreleased]\n\n- A change.\n"))
        run(copy, "git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "--all", "--message", "A change")
    released = run(copy, "scripts/release", NEW)
    assert released.returncode == 0 and f"git tag -a v{NEW}" in released.stdout, released
    assert run(copy, "scripts/release", "--check").stdout == ""
    assert re.search(rf"^## \[Unreleased\]\n\n## \[{NEW}\] - \d{{4}}-\d\d-\d\d\n\n\S", (copy / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f"image: windrow:{NEW}" in (copy / "deploy" / "compose.yaml").read_text()
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        assert f'name = "windrow-log"\nversion = "{NEW}"' in (copy / lock).read_text()
    again = run(copy, "scripts/release", "99.0.0")
    assert again.returncode == 1 and "not committed yet" in again.stderr


def test_a_version_that_is_named_elsewhere_is_found(copy: Path) -> None:
    page = copy / "docs" / "README.md"
    page.write_text(page.read_text() + "\n`docker run windrow:0.0.1`, `pip install windrow==0.0.2`, windrow_0.0.3_amd64.deb\n")
    found = run(copy, "scripts/release", "--check")
    assert found.returncode == 1
    assert [re.search(r"0\.0\.\d", line)[0] for line in found.stdout.splitlines()] == ["0.0.1", "0.0.2", "0.0.3"]


@pytest.mark.parametrize("version", ["0.0.1", "1.0", "v1.0.0", ""])
def test_what_is_no_next_version_is_refused(copy: Path, version: str) -> None:
    assert run(copy, "scripts/release", version).returncode == 1
    assert run(copy, "git", "status", "--porcelain").stdout == ""


def checked(copy: Path, content: str) -> subprocess.CompletedProcess[str]:
    """By `scripts/release-check`, of a release whose package is what the command `content` prints."""
    version = re.search(r'^version = "(.*)"$', (copy / "Cargo.toml").read_text(), re.MULTILINE)[1]
    with (copy / "CHANGELOG.md").open("a") as changelog:
        changelog.write(f"\n## [{version}] - 2026-01-01\n")
    (copy / "tests" / "packages" / "upgrades" / f"v{version}.tar.zst").touch()
    for name, script in QUICK.items():
        (copy / "scripts" / name).write_text(f"#!/bin/sh\nset -e\n{script.replace('{content}', content)}\n")
    run(copy, "git", "add", "--all", "--force")
    run(copy, "git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "--message", "A release")
    (copy / ".venv" / "bin").mkdir(parents=True)
    python = copy / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "tested: $WINDROW_BINARY with $PYTHONPATH"\n')
    python.chmod(0o755)
    # What an earlier release and a check that was broken off have left.
    for used in (copy / "dist", copy / "target" / "packages" / "dist"):
        used.mkdir(parents=True)
        (used / "older").touch()
    return run(copy, "scripts/release-check")


def in_dist(copy: Path) -> list[str]:
    return sorted(path.name for path in (copy / "dist").iterdir())


def test_what_is_released_is_what_was_made_for_it_alone(copy: Path) -> None:
    ended = checked(copy, "echo the same")
    assert ended.returncode == 0 and "tested: /a/program with /a/client" in ended.stdout, ended
    assert in_dist(copy) == ["SHA256SUMS", "made"]
    assert (copy / "dist" / "SHA256SUMS").read_text().split()[1:] == ["made"]


def test_packages_that_come_out_otherwise_in_another_folder_are_not_released(copy: Path) -> None:
    ended = checked(copy, "pwd")
    assert ended.returncode == 1 and "the second build makes other bytes" in ended.stderr, ended
    assert in_dist(copy) == ["older"]
