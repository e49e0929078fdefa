"""A wall clock that is set forth and back by a day. Steps under load, with restarts, are in chaos/test_clock.py."""

from __future__ import annotations

from pathlib import Path

from chaos.preload import Clock
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import HELD, HELD_NOT_WAITING, INTO_T, Background, ids, make_table, queued_inserts, rows
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

DAY_SECONDS = 86_400
# So many inserts go at once.
TOGETHER = {"async_insert_max_query_number": 6}


def test_a_day_forth_and_back(tmp_path: Path) -> None:
    """Who waits goes on waiting, what is held stays held, and after a start on the other day all is stored, once."""
    engine, clock = Engine(tmp_path / "engine"), Clock(tmp_path / "preloaded")
    try:
        make_table(engine.direct, settings="SETTINGS non_replicated_deduplication_window = 100")
        url = backend_url(TESTER, f"127.0.0.1:{engine.direct.port}")
        gateway = RemoteGateway(tmp_path / "gateway", url, engine.direct, environment=clock.environment)
        tested = lambda: gateway.http.as_user(TESTER.name, TESTER.password)
        with Background(tested()) as background:
            waiting = background.insert(rows(0), **HELD, **TOGETHER, wait_for_async_insert_timeout=3600)
            for number, seconds in enumerate((DAY_SECONDS, -DAY_SECONDS, 0, DAY_SECONDS), 1):
                clock.set(seconds)
                assert tested().insert(INTO_T, rows(number), **HELD_NOT_WAITING, **TOGETHER).status == 200
            eventually(lambda: queued_inserts(tested()) == 5, "all are held")
            assert not waiting.answered() and ids(engine.direct) == []
            assert tested().insert(INTO_T, rows(5), **HELD_NOT_WAITING, **TOGETHER).status == 200
            assert waiting.reply().status == 200
        assert ids(engine.direct) == list(range(6))
        token = {"insert_deduplication_token": "one"}
        assert tested().insert(INTO_T, rows(6), **token).status == 200
        assert tested().insert(INTO_T, rows(7), **HELD_NOT_WAITING).status == 200
        clock.set(-DAY_SECONDS)
        assert tested().insert(INTO_T, rows(6), **token).status == 200, "a clock put back knows the token still"
        assert ids(engine.direct) == list(range(7))
        gateway.kill()
        gateway.start()
        eventually(lambda: 7 in ids(engine.direct), "what was held is stored by the next start")
        assert gateway.stop() == 0
        assert ids(engine.direct) == list(range(8))
    finally:
        engine.stop()
