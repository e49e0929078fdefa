"""Makes the pictures of the dashboard and of the demo that stand in the docs: `make pictures`.

A gateway is used by writers of three tables for a minute, with a mistake now and then, and is looked at meanwhile. Then
the demo runs for as long.
"""

from __future__ import annotations

import random
import re
import signal
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Browser, expect

from harness.browser import NARROW, WIDE, Watched, chromium
from harness.endpoint import ClickHouseError, Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway, engine_environment
from harness.paths import gateway_binary
from harness.process import Child
from harness.users import TESTER

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SECONDS, WRITERS = 60, 20
TABLES = ("clicks", "orders", "probes")
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}


def write(endpoint: Endpoint, done: threading.Event) -> None:
    numbers = random.Random(threading.get_ident())
    while not done.wait(numbers.expovariate(20)):
        try:
            endpoint.sql(f"INSERT INTO {numbers.choice(TABLES)} VALUES ({numbers.randrange(1000)}, now())", async_insert=1)
        except ClickHouseError:
            pass


def mistakes(endpoint: Endpoint) -> None:
    for number in (1200, 4711):
        endpoint.sql(f"INSERT INTO orders VALUES ({number}, now())", **NOT_WAITING)
    for _ in range(3):
        endpoint.request("INSERT INTO order VALUES (1)")


def shoot(browser: Browser, gateway: Gateway) -> None:
    # What is not on the screen is not drawn: the wide one is a screen that has room for all.
    for size, name in (((WIDE[0], 2400), "wide"), (NARROW, "narrow")):
        for colours in ("light", "dark"):
            with Watched(browser, size, colours) as watched:
                page = watched.page
                page.goto(f"http://127.0.0.1:{gateway.admin.port}/")
                page.check("#range input[value='300']")
                page.locator("#dead-letters-table tbody tr").first.wait_for()
                page.locator("#arriving-charts canvas").first.wait_for()
                page.screenshot(path=FOLDER / f"dashboard-{name}-{colours}.png")


def shoot_demo(browser: Browser, folder: Path) -> None:
    demo = Child([str(gateway_binary()), "demo", "--no-browser", "--plain"], folder / "demo.log", engine_environment())
    address = eventually(lambda: re.search(r"live: (http://\S+)", demo.log()), "the page's address")[1]
    with Watched(browser, WIDE) as watched:
        # Whoever looks is shown the last minute; so somebody looks for a minute.
        watched.page.goto(address)
        expect(watched.page.locator("#elapsed")).to_have_text(re.compile("^1\\smin"), timeout=180_000)
    for size, name in ((WIDE, "wide"), (NARROW, "narrow")):
        for colours in ("light", "dark"):
            with Watched(browser, size, colours) as watched:
                page = watched.page
                page.goto(address)
                page.locator("#charts canvas").nth(3).wait_for()
                if name == "wide":
                    page.locator('.europe [aria-label^="London"]').hover()
                    page.locator(".card").wait_for()
                page.screenshot(path=FOLDER / f"demo-{name}-{colours}.png")
    demo.signal(signal.SIGINT)
    assert demo.wait() == 0, demo.log()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        shoot_demo(browser, Path(folder))
        gateway = Gateway(Path(folder))
        endpoint = gateway.http.as_user(TESTER.name, TESTER.password)
        for table in TABLES:
            constraint = ", CONSTRAINT price CHECK n < 1000" if table == "orders" else ""
            gateway.direct.sql(f"CREATE TABLE {table} (n UInt64, at DateTime{constraint}) ENGINE = MergeTree ORDER BY n")
        done = threading.Event()
        writers = [threading.Thread(target=write, args=(endpoint, done)) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        threading.Timer(SECONDS / 2, mistakes, [endpoint]).start()
        try:
            done.wait(SECONDS)
            shoot(browser, gateway)
        finally:
            done.set()
            for writer in writers:
                writer.join()
            gateway.stop()


if __name__ == "__main__":
    main()
