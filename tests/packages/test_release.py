"""`scripts/release`, in a copy of what is committed: the version stands in one place, and everything follows it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.paths import ROOT

NEW = "98.7.6"


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
