"""A browser: Debian's Chromium, without a screen, driven by Playwright."""

from __future__ import annotations

import json
import shutil
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

# Chromium as root has no sandbox; what it asks of its maker is not to be asked.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = (1280, 900), (390, 844)
# An axe rule's impact.
SERIOUS = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "chromium is missing: it comes with Debian's package chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield browser
        browser.close()


class Watched:
    """A page, with what it complained of and whom it asked."""

    def __init__(self, browser: Browser, size: tuple[int, int] = WIDE, colours: str = "light"):
        viewport = {"width": size[0], "height": size[1]}
        self.page: Page = browser.new_page(viewport=viewport, color_scheme=colours, reduced_motion="reduce")
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urllib.parse.urlsplit(request.url).netloc))

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.page.close()


def expect_accessible(page: Page) -> None:
    """No serious fault for people who don't see the page, and it never scrolls sideways."""
    faults = [fault for fault in Axe().run(page).response["violations"] if fault["impact"] in SERIOUS]
    assert faults == [], json.dumps(faults, indent=1)[:3000]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
