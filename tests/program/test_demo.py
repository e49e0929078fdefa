"""`windrow demo`: the same rows with and without Windrow, in a pipe, in a terminal and in the browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from harness.adbc import DRIVERS
from harness.browser import NARROW, WIDE, Watched, chromium, expect_accessible
from harness.duckdb import duckdb_library
from harness.eventually import eventually
from harness.gateway import engine_environment
from harness.paths import gateway_binary
from harness.postgres import Postgres
from harness.process import Child, inherited_environment
from harness.terminal import on_terminal

# Without a screen, wherever the tests run.
NO_SCREEN = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}
ENVIRONMENT = {**engine_environment(), "WINDROW_DUCKDB_LIBRARY": str(duckdb_library()), **NO_SCREEN}
SMALL = ("--probes", "40", "--every", "500ms")
# What the page is waited for, on a machine that does much else.
PATIENCE_MS = 60_000
BECAME = re.compile(r"^[\d.]+ parts/s became [\d.]+; ClickHouse's CPU \d+ % became \d+ % of a core\.$")


def command(*arguments: str) -> list[str]:
    return [str(gateway_binary()), "demo", *arguments]


def in_a_pipe(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**inherited_environment(), **ENVIRONMENT}
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, env=environment)


def figures(output: str) -> dict[str, list[str]]:
    """The summary's table: what stands behind each label."""
    lines = (re.match(r"^  (\S.*?)  +(\S.*)$", line) for line in output.splitlines())
    return {line[1]: re.split("  +", line[2]) for line in lines if line}


def test_in_a_pipe_it_compares_and_counts_every_row_in_both_tables() -> None:
    ended = in_a_pipe("--probes", "40", "--for", "6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = figures(ended.stdout)
    inserted = told["rows inserted"]
    assert len(inserted) == 2 and inserted[0] == inserted[1]
    assert told["acknowledged"] == told["found in ClickHouse"] == inserted
    through, straight = (int(parts.split()[0]) for parts in told["parts created"])
    assert straight == int(inserted[0]) and through < straight
    last, before = ended.stdout.splitlines()[-1], ended.stdout.splitlines()[-2]
    assert BECAME.match(last), last
    assert before == "Every row was inserted, acknowledged and found in ClickHouse, by id, both ways."


@pytest.mark.parametrize(
    ("scene", "way"),
    [("synchronous", "Straight to ClickHouse"), ("waiting", "Through Windrow"), ("not-waiting", "Through Windrow")],
)
def test_each_experiment_of_the_article_is_a_scene(scene: str, way: str) -> None:
    ended = in_a_pipe("--scene", scene, *SMALL, "--for", "3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    every = f"{way}: every row was inserted, acknowledged and found in ClickHouse, by id."
    assert ended.stdout.splitlines()[-1] == every
    per_part = int(figures(ended.stdout)["rows inserted"][0]) / int(figures(ended.stdout)["parts created"][0].split()[0])
    assert (per_part == 1) == (scene == "synchronous")


def test_agents_send_opentelemetry() -> None:
    """Over both protocols; every row is found, and the slowest routes stand at the end."""
    ended = in_a_pipe("--scene", "otel", *SMALL, "--for", "6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"OTLP over gRPC on 127\.0\.0\.1:\d+ and over HTTP on 127\.0\.0\.1:\d+", ended.stdout), ended.stdout
    told = figures(ended.stdout)
    sent = told["rows sent"]
    assert len(sent) == 3 and all(int(rows) > 100 for rows in sent)
    assert told["acknowledged"] == told["found in ClickHouse"] == sent
    assert set(told["refused"]) == {"0"}
    requests, parts = map(int, re.search(r"^(\d+) requests became (\d+) parts\.$", ended.stdout, re.MULTILINE).groups())
    assert 0 < parts < requests
    assert ended.stdout.splitlines()[-1] == "Every log record, span and point was acknowledged and is in ClickHouse, once."
    assert re.search(r"^  payment +POST /pay +\d+ +\d+ ms +\d+ ms +[\d.]+ %$", ended.stdout, re.MULTILINE), ended.stdout
    assert re.search(r"logs: \d+ rows/s, \d+ acknowledged, \d+ in ClickHouse, newest [\d.]+ s old", ended.stdout), ended.stdout


def test_telemetry_is_for_clickhouse_alone() -> None:
    refused = in_a_pipe("--scene", "otel", "--backend", "duckdb::memory:")
    assert refused.returncode == 1 and "are for ClickHouse" in refused.stderr


def test_a_terminal_shows_telemetry() -> None:
    environment = {**ENVIRONMENT, "LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "", "LINES": ""}
    asked = command("--scene", "otel", *SMALL)
    wanted = re.compile(r"metrics +\d+ +\d+ +[1-9]\d* ")
    code, written = on_terminal(80, asked, environment, output="stdout", until=lambda text: bool(wanted.search(text)))
    assert code == 0, written
    frames = [frame.split("\x1b[J")[0] for frame in written.split("\x1b[H")[1:]]
    lines = [line.replace("\x1b[K", "") for line in frames[-1].replace("\r", "").split("\n")]
    assert len(lines) <= 24 and all(len(line) <= 80 for line in lines), lines


def test_duckdb_has_one_way_only() -> None:
    ended = in_a_pipe("--backend", "duckdb::memory:", *SMALL, "--for", "3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = figures(ended.stdout)
    assert told["found in DuckDB"] == told["rows inserted"] and len(told["rows inserted"]) == 1
    for more in (["--compare"], ["--scene", "synchronous"]):
        refused = in_a_pipe("--backend", "duckdb::memory:", *more)
        assert refused.returncode == 1 and "all go through Windrow" in refused.stderr


@pytest.mark.parametrize("name", ["PostgreSQL", "SQLite"])
def test_other_databases_have_one_way_only(name: str, tmp_path: Path) -> None:
    postgres = Postgres(tmp_path / "postgres") if name == "PostgreSQL" else None
    url = postgres.url if postgres else f"sqlite://{tmp_path / 'a.db'}"
    environment = {**inherited_environment(), **ENVIRONMENT, "WINDROW_ADBC_DRIVER": DRIVERS[name.lower()]()}
    asked = command("--backend", f"adbc:{url}", *SMALL, "--for", "3")
    ended = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)
    if postgres:
        postgres.stop()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = figures(ended.stdout)
    assert told[f"found in {name}"] == told["rows inserted"] and len(told["rows inserted"]) == 1
    assert int(told["batches created"][0].split()[0]) > 0


@pytest.mark.parametrize(("columns", "arguments", "sides"), [(100, [], 2), (80, [], 1), (80, ["--compare"], 2)])
def test_a_terminal_shows_both_ways_if_it_has_room(columns: int, arguments: list[str], sides: int) -> None:
    environment = {**ENVIRONMENT, "LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "", "LINES": ""}
    # Until there is what is looked for: with bars of three seconds and, of two ways, a sentence.
    wanted = re.compile("parts/s became" if sides == 2 else "Sydney +[0-9]+ ms")
    asked = command(*SMALL, *arguments)
    code, written = on_terminal(columns, asked, environment, output="stdout", until=lambda text: bool(wanted.search(text)))
    assert code == 0, written
    frames = [frame.split("\x1b[J")[0] for frame in written.split("\x1b[H")[1:]]
    lines = [line.replace("\x1b[K", "") for line in frames[-1].replace("\r", "").split("\n")]
    assert len(lines) <= 24 and all(len(line) <= columns for line in lines), lines
    assert any("straight to ClickHouse" in line for line in lines[2:]) == (sides == 2)
    assert any("parts/s became" in line for line in lines) == (sides == 2)
    # The course of parts and CPU, as lines of bars.
    assert len([line for line in lines if re.search("[▁▂▃▄▅▆▇█]{3}", line) and "parts" in line]) == (3 if sides == 2 else 0)
    shown = "\n".join(lines)
    assert "Paris" in shown and "Tokyo" in shown and "Sydney" in shown


def test_a_signal_is_heard_from_the_first_line_on(tmp_path: Path) -> None:
    started = Child(command(*SMALL, "--no-browser"), tmp_path / "demo.log", ENVIRONMENT)
    eventually(lambda: "windrow listens" in started.log(), "the first line")
    started.signal(signal.SIGTERM)
    assert started.wait() in (0, 1), started.log()
    assert "panicked" not in started.log()


def test_output_that_nobody_takes_is_no_panic() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command(*SMALL, "--for", "2"), stdout=full, stderr=subprocess.PIPE, check=False,
            env={**inherited_environment(), **ENVIRONMENT},
        )  # fmt: skip
    assert ended.returncode == 1 and b"standard output can't be written" in ended.stderr


def test_wrong_options_are_refused_before_anything_starts() -> None:
    for wrong in (["--probes", "0"], ["--every", "1ms"], ["--kpi", "nan"], ["--url", "gopher://x"]):
        refused = in_a_pipe(*wrong)
        assert refused.returncode == 1 and refused.stdout == "" and "windrow: " in refused.stderr, wrong


def test_the_password_of_a_site_is_not_shown() -> None:
    ended = in_a_pipe("--probes", "2", "--every", "500ms", "--for", "2", "--url", "http://ann:of-a-site@127.0.0.1:1/x")
    assert "http://127.0.0.1:1/x" in ended.stdout and "of-a-site" not in ended.stdout + ended.stderr


def test_the_page_opens_where_there_is_a_screen(tmp_path: Path) -> None:
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/opened\n')
    opener.chmod(0o755)
    shown = {"DISPLAY": ":99", "PATH": f"{tmp_path}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "", "LINES": ""}
    # A run that ends before anything is inserted has failed.
    some_rows = re.compile("rows inserted +[1-9]")
    opened = tmp_path / "opened"
    for more, expected in ((["--no-browser"], False), ([], True)):
        code, written = on_terminal(
            80, command(*SMALL, *more), {**ENVIRONMENT, **shown}, output="stdout", until=lambda text: bool(some_rows.search(text))
        )
        assert code == 0, written
        assert opened.exists() == expected
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\n", opened.read_text())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Child]:
    started = Child(command(*SMALL, "--no-browser"), tmp_path / "demo.log", ENVIRONMENT)
    yield started
    started.signal(signal.SIGKILL)
    started.wait()


def test_the_page_shows_what_clickhouse_has(browser: Browser, demo: Child) -> None:
    told = eventually(lambda: re.search(r"live: (http://(127\.0\.0\.1:\d+)/)", demo.log()), "the page's address")
    with Watched(browser) as watched:
        page = watched.page
        page.goto(told[1])
        paris = page.locator('.europe [aria-label^="Paris, FR"]')
        expect(paris).to_have_attribute("aria-label", re.compile(r"^Paris, FR: [\d.]+\sms, (within|above) 100\sms; last 60\ss: "), timeout=PATIENCE_MS)
        expect(page.locator("[role=option]")).to_have_count(40)
        expect(page.locator("#figures tbody tr")).to_have_count(2)
        expect(page.locator("#sentence")).to_have_text(re.compile(r"parts/s became [\d.]+; ClickHouse's CPU \d+ % became"), timeout=PATIENCE_MS)
        expect(page.locator("#charts .chart canvas")).to_have_count(4)
        paris.hover()
        expect(page.locator(".card")).to_contain_text("Paris")
        expect_accessible(page)
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        page.emulate_media(color_scheme="dark")
        expect_accessible(page)
        page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        assert watched.complaints == [] and watched.hosts == {told[2]}
        demo.signal(signal.SIGINT)
        expect(page.locator("#state")).not_to_have_attribute("data-level", "ok", timeout=PATIENCE_MS)
    assert demo.wait() == 0, demo.log()
    assert "found in ClickHouse, by id, both ways." in demo.log(), demo.log()[-3000:]
