"""Commands of the program that need no gateway: settings to begin with, completions, help."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from harness.paths import ROOT, gateway_binary
from harness.process import inherited_environment


def windrow(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=inherited_environment())


def test_settings_to_begin_with_are_written_once_and_hold(tmp_path: Path) -> None:
    written = windrow("config", "init", folder=tmp_path)
    file = tmp_path / "windrow.toml"
    assert written.returncode == 0 and str(file.name) in written.stdout
    assert file.read_text() == (ROOT / "windrow.example.toml").read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert windrow("config", "--config", str(file)).returncode == 0
    file.write_text("# mine\n")
    again = windrow("config", "init", folder=tmp_path)
    assert again.returncode == 1 and "left as it is" in again.stderr
    assert file.read_text() == "# mine\n"
    nowhere = windrow("config", "init", str(tmp_path / "no" / "folder.toml"))
    assert nowhere.returncode == 1 and "can't be written" in nowhere.stderr
    assert windrow("config", "init", "-").stdout == (ROOT / "windrow.example.toml").read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_flags(shell: str) -> None:
    script = windrow("completions", shell)
    assert script.returncode == 0
    assert all(word in script.stdout for word in ("dead-letters", "no-browser", "scene"))


def test_bash_takes_the_completions(tmp_path: Path) -> None:
    script = tmp_path / "windrow.bash"
    script.write_text(windrow("completions", "bash").stdout)
    asked = f"source {script}; COMP_WORDS=(windrow de); COMP_CWORD=1; _windrow windrow de windrow; echo ${{COMPREPLY[@]}}"
    completed = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["demo", "dead-letters"]


def test_flags_that_a_command_does_not_heed_are_not_listed() -> None:
    told = windrow("status", "--help").stdout
    assert "--admin" in told and "--flight" not in told and "Examples:" in told
    assert "--native" in windrow("serve", "--help").stdout
