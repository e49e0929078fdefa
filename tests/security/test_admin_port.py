"""Without its token, the admin port tells nothing but health and changes nothing: each of its paths, in every spelling."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator

import pytest

from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, INTO_T, make_table, rows
from harness.dead_letters import DeadLetters
from harness.paths import ROOT
from harness.raw_http import RawConnection, RawReply, head
from harness.users import TESTER

TOKEN = "s3cret token"
JSON = ("Content-Type", "application/json")
OPEN = ("/healthz", "/readyz")
PAGE = ("/", "/main.js", "/style.css", "/vendor/uplot/uPlot.iife.min.js")
# Each path, and the status that the token's owner gets for GET and for POST of an empty selection.
LETTERS = "/api/v1/dead-letters"
PATHS = {
    "/healthz": (200, 405),
    "/readyz": (200, 405),
    "/metrics": (200, 405),
    "/api/v1/status": (200, 405),
    "/api/v1/history": (200, 405),
    "/api/v1/tables": (200, 405),
    "/api/v1/refusals": (200, 405),
    "/api/v1/appends": (200, 405),
    "/api/v1/settings": (200, 405),
    "/api/v1/buffers": (200, 405),
    "/api/v1/cluster": (200, 405),
    "/api/v1/kafka": (200, 405),
    "/api/v1/otlp": (200, 405),
    "/api/v1/replicas": (200, 405),
    "/api/v1/replicas/drain": (405, 400),
    "/api/v1/reload": (405, 200),
    LETTERS: (200, 405),
    f"{LETTERS}/1": (404, 405),
    f"{LETTERS}/1/payload": (404, 405),
    f"{LETTERS}/1/rows": (404, 405),
    f"{LETTERS}/retry": (404, 400),
    f"{LETTERS}/discard": (404, 400),
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
WRONG = (
    (), (("Authorization", "Bearer"),), (("Authorization", "Bearer "),), (("Authorization", f"Bearer {TOKEN[:-1]}"),), (("Authorization", f"Bearer {TOKEN}x"),),
    (("Authorization", f"Bearer {TOKEN.upper()}"),), (("Authorization", TOKEN),), (("Authorization", f"Basic {b64encode(TOKEN.encode()).decode()}"),),
    (("Authorization", f"Bearer x, Bearer {TOKEN}"),), (("Authorization", "Bearer x"), ("Authorization", f"Bearer {TOKEN}")), (("X-Authorization", f"Bearer {TOKEN}"),),
    (("Authorization", f"Bearer {TOKEN}\xa0"),), (("Cookie", f"token={TOKEN}"),), (("X-Forwarded-For", "127.0.0.1"),), (("Host", "localhost"),),
)  # fmt: skip
# Others than the plain one that somebody could take for one that is open, or for one that is not known to be closed.
SPELLINGS = (
    "/healthz/../{}", "/healthz?/../{}", "/healthz%2f..%2f{}", "/healthz/{}", "/healthz;/{}", "/healthz#/{}", "/healthz\\{}", "//{}", "/./{}", "/%2e/{}", "/{}/", "/{}?token=" + TOKEN.replace(" ", "+"),
    "http://x/{}", "http://x/healthz?/{}", "{}", "*", "/{}%00", "/{}/healthz", "/{}?/healthz", "/readyz/../{}", "/HEALTHZ/../{}",
)  # fmt: skip


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("admin"), f"[admin]\ntoken = '{TOKEN}'\n")
    make_table(gateway.direct, "a UInt64, CONSTRAINT small CHECK a < 10")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    assert tested.insert(INTO_T, rows(100), **HELD_NOT_WAITING).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert tested.insert(INTO_T, rows(1), **HELD_NOT_WAITING).status == 200
    yield gateway
    gateway.stop()


def ask(gateway: Gateway, path: str, fields: tuple[tuple[str, str], ...] = (), method: str = "GET", body: bytes = b"") -> RawReply:
    with RawConnection(gateway.admin) as connection:
        return connection.exchange(head(method, path, (("Host", "x"), *fields, ("Content-Length", str(len(body))))) + body, method)


def in_source() -> set[str]:
    """What the two matches over paths name."""
    admin = (ROOT / "core" / "gateway" / "src" / "admin" / "mod.rs").read_text()
    letters = (ROOT / "core" / "gateway" / "src" / "admin" / "dead_letters" / "mod.rs").read_text()
    plain = set(re.findall(r'^ +"(/[a-z0-9/-]+)"(?: if .*)? =>', admin, re.MULTILINE)) | {LETTERS}
    arms = re.findall(r"^ +\[([^\]]*)\] if .*=>|^ +\[([^\]]*)\] if \w+ =>", letters, re.MULTILINE)
    segments = [(one or other).replace("id", "1").replace('"', "").split(", ") for one, other in arms]
    return plain | {"/".join([LETTERS, *filter(None, names)]) for names in segments}


def test_these_are_all_paths() -> None:
    assert in_source() == set(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_without_the_token(guarded: Gateway, path: str) -> None:
    for method in METHODS:
        for fields in WRONG:
            reply = ask(guarded, path, (*fields, JSON), method, b'{"all":true}' if method == "POST" else b"")
            if path in OPEN:
                assert reply.status == (200 if method in ("GET", "HEAD") else 405) and reply.body in (b"ok\n", b"ready\n", b"only GET\n", b"")
            else:
                assert reply.status == 401, (method, fields, reply.text)
                assert method == "HEAD" or reply.text == "the admin port needs the token of the setting admin.token\n"


@pytest.mark.parametrize("path", PATHS)
def test_a_path_with_the_token(guarded: Gateway, path: str) -> None:
    owner = (("Authorization", f"Bearer {TOKEN}"), JSON)
    assert (ask(guarded, path, owner).status, ask(guarded, path, owner, "POST", b"{}").status) == PATHS[path]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_leads_past_the_token(guarded: Gateway, spelling: str) -> None:
    for path in PATHS:
        for method in ("GET", "POST"):
            reply = ask(guarded, spelling.format(path.removeprefix("/")), (JSON,), method, b'{"all":true}' if method == "POST" else b"")
            assert reply.status in (400, 401) or reply.text in ("ok\n", "ready\n", "only GET\n"), (path, reply.text)


def test_paths_that_are_not_there_are_closed_too(guarded: Gateway) -> None:
    """Whether there is something is not told either."""
    assert {ask(guarded, path).status for path in ("/zork", "/index.html", "/api", "/api/v1/zork", "/debug/pprof", "/api/v1/config")} == {401}


@pytest.mark.parametrize("path", PAGE)
def test_the_page_is_open(guarded: Gateway, path: str) -> None:
    reply = ask(guarded, path)
    assert reply.status == 200
    policy = reply.get("content-security-policy")
    assert policy.startswith("default-src 'none'; script-src 'self';") and "unsafe" not in policy
    assert (reply.get("x-content-type-options"), reply.get("referrer-policy")) == ("nosniff", "no-referrer")
    assert ask(guarded, path, method="POST").status == 405


FROM_HERE = ("localhost", "localhost:1", "127.0.0.1:8080", "[::1]:8080", "10.1.2.3")
FROM_ELSEWHERE = ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "[evil]")


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/dead-letters", "/api/v1/zork"])
def test_without_a_token_other_sites_have_no_way_in(gateway: Gateway, path: str) -> None:
    """A page of theirs asks by a name that leads here, or by the address, and its browser says whose it is."""
    with RawConnection(gateway.admin) as connection:
        for host in FROM_HERE:
            for origin in ((), (("Origin", f"http://{host}"),)):
                assert connection.exchange(head("GET", path, (("Host", host), *origin)), "GET").status != 403, host
        for host in FROM_ELSEWHERE:
            assert connection.exchange(head("GET", path, (("Host", host),)), "GET").status == 403, host
        for origin in ("http://evil.example", "null", "http://localhost:1"):
            fields = (("Host", "localhost:2"), ("Origin", origin), ("Content-Length", "0"))
            assert connection.exchange(head("POST", "/api/v1/reload", fields), "POST").status == 403, origin


def test_nothing_was_changed_by_all_of_this(guarded: Gateway) -> None:
    """All letters were to be retried and discarded, again and again; only the token's owner had a reload."""
    letters = DeadLetters(guarded, "default", TOKEN).come(1)
    assert len(letters) == 1 and letters[0]["code"] == 469


def test_the_data_port_has_none_of_it(guarded: Gateway) -> None:
    """What stands on the admin port is not to be had from the other one, whatever ClickHouse says to the path."""
    stranger = guarded.http.as_user("nobody", "x")
    for path in PATHS:
        with RawConnection(guarded.http) as connection:
            said = connection.exchange(head("GET", path, (("Host", "x"), ("Authorization", stranger.basic_auth()), ("Connection", "close"))), "GET")
        assert said.status >= 400 and "windrow_" not in said.text, said.text


def test_many_who_connect_and_say_nothing(guarded: Gateway) -> None:
    """They have a number of files that is bounded, and leave for whoever has something to say."""
    # Before the time is over after which a head that never comes ends a connection.
    connections = [RawConnection(guarded.admin, timeout_seconds=20) for _ in range(600)]
    try:
        tested = guarded.http.as_user(TESTER.name, TESTER.password)
        assert tested.sql("SELECT 1") == "1"
        assert sum(connection.closed_by_peer() for connection in connections[:100]) == 100, "the first make room"
        assert ask(guarded, "/healthz").status == 200
    finally:
        for connection in connections:
            connection.close()
