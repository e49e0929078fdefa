"""The alert rules, as Prometheus's own tool reads them: each fires in its case, and names metrics that there are."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from harness.paths import ROOT, TESTS

RULES = ROOT / "alerts" / "windrow.rules.yml"
RULES_TEST = TESTS / "alerts" / "windrow.rules.test.yml"
DOCS = ("operations.md", "dead-letters.md", "otlp.md")


@pytest.mark.parametrize("arguments", [("check", "rules", RULES), ("test", "rules", RULES_TEST)])
def test_promtool_agrees(arguments: tuple) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: it comes with Debian's package prometheus"
    run = subprocess.run([promtool, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_alert_is_tested_in_both_states() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    tested = RULES_TEST.read_text()
    assert alerts and len(set(alerts)) == len(alerts)
    for alert in alerts:
        assert f"alertname: {alert}, exp_alerts: []" in tested, alert
        assert re.search(rf"alertname: {alert}\n +exp_alerts:\n", tested), alert


def test_the_metrics_are_documented() -> None:
    documented = set(re.findall(r"`(windrow_\w+)`", "".join((ROOT / "docs" / page).read_text() for page in DOCS)))
    assert set(re.findall(r"\bwindrow_\w+", re.sub(r"name: windrow\b", "", RULES.read_text()))) <= documented
