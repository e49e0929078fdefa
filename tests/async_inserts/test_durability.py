"""What is acknowledged as kept on disk is stored in the end, whatever dies in between."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gate import Gate
from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.load import Load
from harness.process import inherited_environment, wait_gone
from harness.remote import RemoteGateway
from harness.users import TESTER

StartGateway = Callable[..., Gateway]
# The answers of the backend hold for a moment only: whoever comes later has to go by what it said last.
FORGETFUL = "[gather]\nadmission_ttl_ms = 1\nschema_ttl_ms = 1\n"
KEPT = {"wait_for_async_insert": 0}
ROWS_APART = 1_000_000
#: Of a segment; its first record begins behind it.
HEADER_BYTES = 96


def as_tester(gateway: Gateway) -> Endpoint:
    return gateway.http.as_user(TESTER.name, TESTER.password)


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Engine]:
    """A ClickHouse that the gateway did not start, and that the test may end and start again."""
    engine = Engine(tmp_path / "engine")
    # It stores an insert whose answer was cut off by its end. That it comes again is known by the table's window.
    make_table(engine.direct, settings="SETTINGS non_replicated_deduplication_window = 1000")
    yield engine
    engine.child.signal(signal.SIGCONT)
    engine.stop()


@pytest.fixture
def start_remote(tmp_path: Path, backend: Engine) -> Iterator[Callable[..., RemoteGateway]]:
    """Starts gateways in front of that ClickHouse."""
    running: list[RemoteGateway] = []

    def start(config: str = FORGETFUL) -> RemoteGateway:
        # Windrow's own account, which may do everything.
        url = f"http://{quote(TESTER.name)}:{quote(TESTER.password)}@127.0.0.1:{backend.direct.port}"
        running.append(RemoteGateway(tmp_path / f"gateway-{len(running)}", url, backend.direct, config))
        return running[-1]

    yield start
    for gateway in running:
        gateway.stop()


def kept(tested: Endpoint, *numbers: int) -> None:
    for number in numbers:
        reply = tested.insert(INTO_T, rows(number), **KEPT)
        assert reply.status == 200, reply.text


def all_there(direct: Endpoint, count: int) -> None:
    eventually(lambda: direct.answers() and len(ids(direct)) >= count, "everything is stored")
    assert ids(direct) == list(range(count))


def each_once(direct: Endpoint, loads: list[Load]) -> None:
    """Every acknowledged row is there in the end, and none that is there came of nothing or twice."""
    acknowledged = {number for load in loads for number in load.written.acknowledged}
    eventually(lambda: direct.answers() and acknowledged <= set(ids(direct)), "everything acknowledged is stored")
    there = ids(direct)
    assert len(there) == len(set(there)), f"{len(there) - len(set(there))} rows are there twice"
    assert set(there) <= set().union(*(load.written.tried() for load in loads))


def messages(gateway: Gateway) -> str:
    return "\n".join(str(event) for event in gateway.log_events())


def segments(gateway: Gateway) -> list[Path]:
    return sorted(path for path in (gateway.data_dir / "journal").iterdir() if path.is_file() and path.stat().st_size > 0)


def test_nobody_notices_that_the_backend_is_away(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    tested = as_tester(start_remote())
    kept(tested, *range(5))
    backend.stop()
    kept(tested, *range(5, 40))
    backend.start()
    kept(tested, *range(40, 45))
    all_there(backend.direct, 45)


def test_nobody_notices_that_the_backend_hangs(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    tested = as_tester(start_remote())
    kept(tested, *range(5))
    backend.child.signal(signal.SIGSTOP)
    kept(tested, *range(5, 40))
    backend.child.signal(signal.SIGCONT)
    all_there(backend.direct, 40)


def test_an_earlier_answer_ends_with_a_refusal(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    """What the backend said last is what counts: while it is there, it is asked."""
    tested = as_tester(start_remote())
    kept(tested, 0)
    backend.direct.sql("DROP TABLE t SYNC")

    def is_refused() -> bool:
        reply = tested.insert(INTO_T, rows(1), **KEPT)
        return (reply.status, reply.code) == (404, 60)

    # A backend that takes more than a second to answer is not waited for by who doesn't wait for storing.
    eventually(is_refused, "the insert into a dropped table is refused")


def test_a_directory_belongs_to_one_gateway(start_remote: Callable[..., RemoteGateway]) -> None:
    """Also where the ClickHouse is somebody else's: the journal is the gateway's own."""
    first = start_remote()
    second = subprocess.run(first.command(), capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)
    said = second.stdout + second.stderr
    assert second.returncode == 1 and str(first.data_dir) in said and str(first.child.pid) in said, said
    assert first.data_dir.stat().st_mode & 0o777 == 0o700
    assert as_tester(first).sql("SELECT 1") == "1"


def test_it_stays_ready_while_the_backend_is_away(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    gateway = start_remote()
    kept(as_tester(gateway), 0)
    assert gateway.ready() == (200, "ready\n")
    all_there(backend.direct, 1)
    backend.stop()
    eventually(lambda: "the backend is away" in gateway.ready().text, "it is noticed")
    assert gateway.ready().status == 200
    newcomer = start_remote()
    assert newcomer.ready().status == 503, "it knows nothing of the backend and can take nothing for it"


def test_a_journal_is_read_back_into_other_types(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    """What was acknowledged is stored where the types that the table has by then can hold it, else a dead letter."""
    gateway, direct = start_remote(), backend.direct
    make_table(direct, "a Int32", "wider")
    make_table(direct, "a DateTime64(3, 'UTC')", "narrower")
    into = "INSERT INTO {} FORMAT JSONEachRow".format
    for table, value in (("wider", "7"), ("narrower", '"2024-03-04 05:06:07"'), ("narrower", '"2024-03-04 05:06:07.891"')):
        assert as_tester(gateway).insert(into(table), f'{{"a":{value}}}', **HELD_NOT_WAITING).status == 200
    gateway.kill()
    direct.sql("ALTER TABLE wider MODIFY COLUMN a Float64")
    direct.sql("ALTER TABLE narrower MODIFY COLUMN a DateTime('UTC')")
    gateway.start()
    [letter] = DeadLetters(gateway, "default").come(1)
    assert (letter["table"], letter["rows"], letter["code"]) == ("narrower", 1, 395)
    eventually(lambda: direct.sql("SELECT a FROM wider") == "7", "it is stored")
    assert direct.sql("SELECT a FROM narrower") == "2024-03-04 05:06:07"


def test_kill_of_the_gateway(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    make_table(gateway.direct)
    tested = as_tester(gateway)
    for number in range(50):
        assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING).status == 200
    assert ids(gateway.direct) == [], "they are held"
    gateway.kill()
    gateway.start()
    all_there(gateway.direct, 50)


@pytest.mark.parametrize("victims", ["gateway", "engine", "both"])
def test_kills_under_load(start_gateway: StartGateway, victims: str) -> None:
    gateway = start_gateway()
    make_table(gateway.direct)
    loads: list[Load] = []
    for _ in range(2):
        before = len(ids(gateway.direct))
        # Rows of its own in the same table: what of the first round is still being stored again must not be there twice after the second.
        loads.append(Load(as_tester(gateway), first=len(loads) * ROWS_APART, **KEPT))
        with loads[-1] as load:
            eventually(load.acknowledged_more(300), "inserts are acknowledged")
            engine = gateway.engine_pid()
            if victims != "gateway":
                os.kill(engine, signal.SIGKILL)
            if victims == "engine":
                wait_gone(engine)
                eventually(load.acknowledged_more(300), "inserts are acknowledged while the engine starts")
                assert not load.written.refused
            else:
                gateway.kill()
        if victims != "engine":
            wait_gone(engine)
            gateway.start()
        each_once(gateway.direct, loads)
        assert len(ids(gateway.direct)) > before


def test_what_is_left_holds_up_nobody(start_gateway: StartGateway) -> None:
    """Inserts of an earlier life that can't be stored yet: new ones are taken all the same, other tables know nothing of it."""
    gateway = start_gateway()
    make_table(gateway.direct)
    make_table(gateway.direct, name="other")
    with Gate() as gate:
        gate.stand_behind(gateway.direct, "t")
        kept(as_tester(gateway), *range(20))
        gate.await_insert()
        gateway.kill()
        gateway.start()
        assert re.search(r"'inserts': 20\b", messages(gateway)), messages(gateway)
        tested = as_tester(gateway)
        kept(tested, *range(20, 40))
        assert tested.insert("INSERT INTO other FORMAT JSONEachRow", rows(1)).status == 200
        assert ids(gateway.direct, "other") == [1] and len(ids(gateway.direct)) < 40
        gate.open()
        all_there(gateway.direct, 40)


def test_an_end_without_the_backend(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    gateway = start_remote("[gather]\nshutdown_timeout_ms = 300\n")
    tested = as_tester(gateway)
    kept(tested, *range(4))
    # Who waits hears when everything before it has come to its end. That it is in the table is not enough: the gateway has to know it.
    assert tested.insert(INTO_T, rows(4)).status == 200
    assert ids(backend.direct) == list(range(5))
    backend.stop()
    kept(tested, *range(5, 25))
    assert gateway.stop() == 0, gateway.child.log()[-3000:]
    assert re.search(r"'inserts': 20\b", messages(gateway)), messages(gateway)
    backend.start()
    gateway.start()
    all_there(backend.direct, 25)


def test_an_end_that_loses_something_says_so(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    gateway = start_remote("[gather]\nshutdown_timeout_ms = 300\n")
    tested = as_tester(gateway)
    # What a window knows again is in the journal whatever its level.
    make_table(backend.direct, name="unknowing")
    into_it = INTO_T.replace(" t ", " unknowing ")
    assert tested.insert(into_it, rows(0), windrow_ack="memory").status == 200
    backend.stop()
    assert tested.insert(into_it, rows(1), windrow_ack="memory").status == 200
    assert gateway.stop() == 1, gateway.child.log()[-3000:]


def test_a_full_journal(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    bounds = '[journal]\nsegment_bytes = "64KiB"\nmax_bytes = "1MiB"\nmax_table_share = 1.0\n'
    gateway = start_remote(FORGETFUL + bounds)
    tested = as_tester(gateway)
    kept(tested, 0)
    backend.stop()
    acknowledged, refused = [0], None
    for first in range(1, 1_000_000, 1000):
        numbers = range(first, first + 1000)
        reply = tested.insert(INTO_T, rows(*numbers), **KEPT)
        if reply.status != 200:
            refused = reply
            break
        acknowledged.extend(numbers)
    assert refused and (refused.status, refused.code) == (503, 243), refused
    assert refused.headers["retry-after"] and "journal" in refused.text
    assert len(acknowledged) > 10_000
    on_disk = sum(path.stat().st_size for path in (gateway.data_dir / "journal").iterdir())
    assert on_disk <= 1 << 20
    backend.start()
    last = acknowledged[-1] + 1
    eventually(lambda: tested.insert(INTO_T, rows(last), **KEPT).status == 200, "there is room again")
    all_there(backend.direct, last + 1)


def test_what_no_journal_could_hold_is_forwarded(start_gateway: StartGateway) -> None:
    gateway = start_gateway('[journal]\nsegment_bytes = "64KiB"\nmax_bytes = "1MiB"\nmax_table_share = 1.0\n')
    make_table(gateway.direct, "a UInt64, s String")
    reply = as_tester(gateway).insert(INTO_T, f'{{"a":1,"s":"{"x" * 900_000}"}}', **KEPT)
    assert reply.status == 200, reply.text
    assert ids(gateway.direct) == [1]


def test_a_damaged_journal_stops_the_start(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    gateway = start_remote("")
    tested = as_tester(gateway)
    kept(tested, 0)
    backend.stop()
    kept(tested, *range(1, 50))
    gateway.kill()
    segment = segments(gateway)[-1]
    content = bytearray(segment.read_bytes())
    # Of the checksum of its first record; between records are zeros, on which nothing depends.
    content[HEADER_BYTES] ^= 1
    segment.write_bytes(content)
    ended = subprocess.run(gateway.command(), capture_output=True, text=True, timeout=60, env=inherited_environment(), check=False)
    assert ended.returncode == 1, ended
    assert segment.name in ended.stderr and "windrow journal repair" in ended.stderr, ended.stderr
    assert "panicked" not in ended.stderr
