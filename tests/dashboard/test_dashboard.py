"""The dashboard in a browser: what an insert just did is seen, dead letters are dealt with, and names are only text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from harness.browser import NARROW, WIDE, Watched, chromium, expect_accessible
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.otlp import OverHttp, logs
from harness.users import TESTER

HOSTILE = "<script>alert(1)</script>"
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0, "windrow_ack": "disk"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def address(gateway: Gateway) -> str:
    return f"http://127.0.0.1:{gateway.admin.port}/"


@pytest.fixture
def watched(browser: Browser, gateway: Gateway) -> Iterator[Watched]:
    with Watched(browser) as watched:
        watched.page.goto(address(gateway))
        yield watched
        assert watched.complaints == []
        assert watched.hosts == {f"127.0.0.1:{gateway.admin.port}"}


def find(page: Page, text: str) -> None:
    page.fill("#tables-search", text)


def test_an_insert_is_seen_within_two_seconds(watched: Watched, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE seen (n UInt64) ENGINE = MergeTree ORDER BY n")
    page = watched.page
    find(page, f"{direct.database}.seen")
    expect(page.locator("#tables-pages")).to_contain_text(re.compile("no table|none of", re.IGNORECASE))
    tested.sql("INSERT INTO seen VALUES (1), (2), (3)", async_insert=1)
    expect(page.locator("#tables tbody tr")).to_have_count(1)
    row = page.locator("#tables tbody tr", has_text=f"{direct.database}.seen")
    expect(row.locator("td, th").last).to_have_text("3")
    # History is the gateway's: a page that is opened again shows it at once.
    page.reload()
    expect(page.locator("#arriving-charts canvas").first).to_be_visible()


def test_names_are_text(watched: Watched, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql(f"CREATE TABLE `{HOSTILE}` (n UInt64, CONSTRAINT small CHECK n < 10) ENGINE = MergeTree ORDER BY n")
    page = watched.page
    page.on("dialog", lambda dialog: watched.complaints.append(f"a dialog: {dialog.message}"))
    find(page, HOSTILE)
    tested.sql(f"INSERT INTO `{HOSTILE}` VALUES (1)", async_insert=1)
    tested.sql(f"INSERT INTO `{HOSTILE}` VALUES (100)", **NOT_WAITING)
    expect(page.locator("#tables tbody tr", has_text=HOSTILE)).to_have_count(1)
    letter = page.locator("#dead-letters-table tbody tr", has_text=f"{direct.database}.{HOSTILE}")
    expect(letter).to_have_count(1)
    letter.get_by_role("button", name="Open").click()
    expect(page.locator("#opened-facts")).to_contain_text(HOSTILE)
    assert page.evaluate("document.querySelectorAll('body script').length") == 0
    page.keyboard.press("Escape")


def test_a_dead_letter_is_looked_at_and_retried(watched: Watched, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE bounded (n UInt64, CONSTRAINT small CHECK n < 10) ENGINE = MergeTree ORDER BY n")
    page = watched.page
    tested.sql("INSERT INTO bounded VALUES (77)", **NOT_WAITING)
    letter = page.locator("#dead-letters-table tbody tr", has_text=f"{direct.database}.bounded")
    expect(letter).to_have_count(1)
    expect(page.locator("#health-sentence")).to_contain_text("dead letter")
    letter.get_by_role("button", name="Open").click()
    expect(page.locator("#opened-error")).to_contain_text("small")
    expect(page.locator("#opened-rows tbody")).to_contain_text("77")
    direct.sql("ALTER TABLE bounded DROP CONSTRAINT small")
    page.click("#opened-retry")
    expect(letter).to_have_count(0)
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert direct.sql("SELECT n FROM bounded") == "77"


def test_a_dead_letter_is_discarded_after_a_question(watched: Watched, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE thrown (n UInt64, CONSTRAINT small CHECK n < 10) ENGINE = MergeTree ORDER BY n")
    page = watched.page
    tested.sql("INSERT INTO thrown VALUES (77)", **NOT_WAITING)
    letter = page.locator("#dead-letters-table tbody tr", has_text=f"{direct.database}.thrown")
    letter.get_by_role("button", name="Discard").click()
    expect(page.locator("#confirm")).to_be_visible()
    page.keyboard.press("Escape")
    expect(letter).to_have_count(1)
    letter.get_by_role("button", name="Discard").click()
    page.click("#confirm-yes")
    expect(letter).to_have_count(0)


def test_signals_of_opentelemetry_are_shown_where_they_are_taken(browser: Browser, gateway: Gateway, start_gateway) -> None:
    taking = start_gateway("", ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0"))
    over = OverHttp(taking, headers={"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password})
    with Watched(browser) as watched:
        page = watched.page
        page.goto(address(taking))
        logs_row = page.locator("#otlp-table tbody tr", has_text="Logs")
        expect(page.locator("#otlp-table tbody tr")).to_have_count(3)
        assert over.send("logs", logs(["a", "b", "c"], at_ns=time.time_ns() - 60_000_000_000)).is_taken
        assert over.send("logs", b"rubbish").status == 400
        rows, requests, age = (logs_row.locator("td").nth(at) for at in (5, 7, 3))
        expect(rows).to_have_text("3")
        expect(requests).to_have_text("1")
        # Within an eighth of a minute.
        expect(age).to_have_text(re.compile(r"^(5\d(\.\d)?\ss|1\smin( \d+\ss)?)$"))
        expect_accessible(page)
        # Who takes none shows none.
        page.goto(address(gateway))
        expect(page.locator("#arriving-charts canvas").first).to_be_visible()
        expect(page.locator("#otlp")).to_be_hidden()
        assert watched.complaints == []


def test_without_the_token_nothing_is_shown(browser: Browser, start_gateway) -> None:
    gateway = start_gateway('[admin]\ntoken = "of the test"\n')
    gateway.direct.sql("CREATE TABLE secret_name (n UInt64) ENGINE = MergeTree ORDER BY n")
    gateway.http.as_user(TESTER.name, TESTER.password).sql("INSERT INTO secret_name VALUES (1)", async_insert=1)
    with Watched(browser) as watched:
        page = watched.page
        page.goto(address(gateway))
        expect(page.locator("#sign-in")).to_be_visible()
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#token-failure")).not_to_be_empty()
        expect(page.locator("#main")).to_be_hidden()
        assert "secret_name" not in page.content()
        page.fill("#token", "of the test")
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_visible()
        expect(page.locator("#sign-in")).to_be_hidden()
        expect(page.locator("#tables")).to_contain_text("secret_name")
        # Chromium itself notes each answer of 401.
        assert [line for line in watched.complaints if "401" not in line] == []


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_everybody_can_use_it(browser: Browser, gateway: Gateway, tested: Endpoint, direct: Endpoint, size, colours) -> None:
    direct.sql("CREATE TABLE bounded (n UInt64, CONSTRAINT small CHECK n < 10) ENGINE = MergeTree ORDER BY n")
    tested.sql("INSERT INTO bounded VALUES (77)", **NOT_WAITING)
    with Watched(browser, size, colours) as watched:
        page = watched.page
        page.goto(address(gateway))
        expect(page.locator("#dead-letters-table tbody tr").first).to_be_visible()
        expect_accessible(page)
        assert watched.complaints == []
