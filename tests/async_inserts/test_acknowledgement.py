"""Each insert gets its own answer, and the answer is true."""

from __future__ import annotations

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gate import Gate
from harness.gateway import Gateway
from harness.inserts import HELD, INTO_T, Background, ids, make_table, parts_made, queued_inserts, rows, send_all_then_read


def test_three_hundred_at_once_make_few_parts(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    replies = send_all_then_read(tested, [rows(n).encode() for n in range(300)], wait_for_async_insert=1)
    assert {reply.status for reply in replies} == {200}
    assert all('"written_rows":"1"' in (reply.get("X-ClickHouse-Summary") or "") for reply in replies)
    assert ids(direct) == list(range(300))
    assert parts_made(direct) <= 5


def test_three_hundred_from_a_client_that_knows_nothing(gateway: Gateway, direct: Endpoint) -> None:
    """No user, no settings: gathering and waiting are the defaults."""
    make_table(direct)
    nobody = gateway.http.using(direct.database)
    replies = send_all_then_read(nobody, [rows(n).encode() for n in range(300)])
    assert {reply.status for reply in replies} == {200}
    assert ids(direct) == list(range(300))
    assert parts_made(direct) <= 5


def test_bad_row_is_its_senders_alone(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    bodies = [rows(n).encode() for n in range(40)]
    bodies[20] = b'{"a":1000}{"a":"x"}{"a":2000}'
    replies = send_all_then_read(tested, bodies)
    bad = replies.pop(20)
    assert (bad.status, bad.code) == (400, 27)
    assert "(at row 2)" in bad.text and "CANNOT_PARSE_INPUT_ASSERTION_FAILED" in bad.text
    assert {reply.status for reply in replies} == {200}
    assert ids(direct) == [n for n in range(40) if n != 20]


def test_bad_row_without_waiting_is_refused_too(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    reply = tested.insert(INTO_T, '{"a":1}{"a":"x"}', wait_for_async_insert=0)
    assert (reply.status, reply.code) == (400, 27)
    assert ids(direct) == []


def test_failure_in_the_backend_hits_the_guilty_only(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """A constraint is checked when the batch is stored; ClickHouse would fail the whole batch."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 1000")
    bodies = [rows(n).encode() for n in range(20)]
    bodies[7] = rows(5000).encode()
    replies = send_all_then_read(tested, bodies)
    guilty = replies.pop(7)
    assert (guilty.status, guilty.code) == (500, 469), guilty.text
    assert {reply.status for reply in replies} == {200}
    assert ids(direct) == [n for n in range(20) if n != 7]


def test_summary_counts_ones_own_rows(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    sizes = [1, 2, 3, 50, 1000]
    replies = send_all_then_read(tested, [rows(*range(size)).encode() for size in sizes])
    for size, reply in zip(sizes, replies):
        assert f'"written_rows":"{size}"' in (reply.get("X-ClickHouse-Summary") or "")
    assert len(ids(direct)) == sum(sizes)


def test_without_waiting_rows_arrive_soon(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    reply = tested.insert(INTO_T, rows(1, 2, 3), wait_for_async_insert=0)
    assert (reply.status, reply.body) == (200, b"")
    eventually(lambda: ids(direct) == [1, 2, 3], "the rows arrive")


def test_stored_means_visible(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Read your writes, one after another, with no flush in between."""
    make_table(direct)
    for number in range(30):
        assert tested.insert(INTO_T, rows(number)).status == 200
        assert ids(direct) == list(range(number + 1))


def test_wait_timeout_withdraws_what_is_not_yet_sent(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    reply = tested.insert(INTO_T, rows(1), **HELD, wait_for_async_insert_timeout=1)
    assert (reply.status, reply.code) == (408, 159), reply.text
    assert "withdrawn" in reply.text
    assert queued_inserts(tested) == 0
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(direct) == []


def test_withdrawing_one_leaves_the_others(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with Background(tested) as background:
        patient = background.insert(rows(1), **HELD)
        eventually(lambda: queued_inserts(tested) == 1, "the first insert is queued")
        reply = tested.insert(INTO_T, rows(2), **HELD, wait_for_async_insert_timeout=1)
        assert reply.code == 159
        assert not patient.answered()
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert patient.reply().status == 200
    assert ids(direct) == [1]


def test_wait_timeout_during_a_slow_flush_says_so(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """What is already on its way can't be taken back, and the answer doesn't claim so."""
    make_table(direct)
    with Gate() as gate:
        gate.stand_behind(direct, "t")
        reply = tested.insert(INTO_T, rows(1), wait_for_async_insert_timeout=1)
        assert (reply.status, reply.code) == (408, 159), reply.text
        assert "in flight" in reply.text
        gate.open()
        eventually(lambda: ids(direct) == [1], "the row lands all the same")


def test_query_id_is_echoed(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    replies = [tested.insert(INTO_T, rows(n), query_id=f"mine-{n}", wait_for_async_insert=n) for n in (0, 1)]
    assert [reply.headers["x-clickhouse-query-id"] for reply in replies] == ["mine-0", "mine-1"]


def test_order_of_one_writer_is_kept(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Unsorted, an engine of logs keeps rows as they came."""
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = Log")
    for number in range(200):
        assert tested.insert(INTO_T, rows(number), wait_for_async_insert=0).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert direct.sql("SELECT a FROM t SETTINGS max_threads = 1") == "\n".join(str(n) for n in range(200))
