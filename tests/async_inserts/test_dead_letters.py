"""What becomes of acknowledged inserts that can't be stored, and of those who deal with them."""

from __future__ import annotations

import json
import stat

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.dead_letters import DeadLetters
from harness.raw_http import RawConnection, head
from harness.users import ANN, JOE, TESTER

NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
SMALL = "a UInt64, CONSTRAINT small CHECK a < 1000"
VIOLATED_CONSTRAINT = 469
UNKNOWN_TABLE = 60
TOO_MANY_PARTS = 252


@pytest.fixture
def letters(gateway: Gateway, database: str) -> DeadLetters:
    return DeadLetters(gateway, database)


def own(start_gateway, config: str = "", database: str = "default") -> tuple[Gateway, DeadLetters]:
    gateway = start_gateway(config)
    return gateway, DeadLetters(gateway, database)


def flush(tested: Endpoint) -> None:
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")


def relax(direct: Endpoint) -> None:
    direct.sql("ALTER TABLE t DROP CONSTRAINT small")


# What becomes a letter


@pytest.mark.parametrize("ack", ["disk", "memory"])
def test_a_violated_constraint(letters: DeadLetters, tested: Endpoint, direct: Endpoint, ack: str) -> None:
    """One insert is bad. Those beside and behind it are stored; it is kept with all that is known of it."""
    make_table(direct, SMALL)
    settings = {**HELD_NOT_WAITING, "windrow_ack": ack, "output_format_json_quote_64bit_integers": 0}
    for payload in (rows(1), rows(1000, 5), rows(2)):
        assert tested.insert(INTO_T, payload, query_id=f"id-{payload[:9]}", **settings).status == 200
    flush(tested)
    assert tested.insert(INTO_T, rows(3), async_insert=1).status == 200
    [letter] = letters.come()
    assert ids(direct) == [1, 2, 3]
    known = {name: letter[name] for name in ("table", "user", "code", "attempts", "rows", "bytes", "ack", "format")}
    assert known == {
        "table": "t",
        "user": TESTER.name,
        "code": VIOLATED_CONSTRAINT,
        "attempts": known["attempts"],
        "rows": 2,
        "bytes": len(rows(1000, 5)),
        "ack": ack,
        "format": "JSONEachRow",
    }
    assert known["attempts"] >= 1
    assert "`small`" in letter["error"] and letter["arrived"] <= letter["failed"]
    assert letter["query_id"] == 'id-{"a":1000' and letter["query"] == f"INSERT INTO {letter['database']}.t (a) FORMAT JSONEachRow"
    shown = letters.show(letter)
    assert shown["columns"] == [{"name": "a", "type": "UInt64"}] and shown["kept_as"] == "Native"
    assert letters.rows(letter) == [{"a": 1000}, {"a": 5}]
    assert letters.rows(letter, limit=1) == [{"a": 1000}]


def test_who_waits_is_told_and_leaves_no_letter(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    assert tested.insert(INTO_T, rows(1000), async_insert=1).code == VIOLATED_CONSTRAINT
    tested.insert(INTO_T, rows(2000), **NOT_WAITING)
    assert [letter["rows"] for letter in letters.come()] == [1]


def test_a_table_that_is_dropped_meanwhile(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    tested.insert(INTO_T, rows(1, 2), **HELD_NOT_WAITING)
    direct.sql("DROP TABLE t SYNC")
    flush(tested)
    [letter] = letters.come()
    assert letter["code"] == UNKNOWN_TABLE
    assert letters.rows(letter) == [{"a": 1}, {"a": 2}], "their types are known without the table"
    make_table(direct)
    assert letters.retry(ids=[letter["id"]]) == {"selected": 1, "retried": 1, "failed": []}
    eventually(lambda: ids(direct) == [1, 2], "the rows are there")
    assert letters.all() == []
    assert letters.retry(ids=[letter["id"]]) == {"selected": 0, "retried": 0, "failed": []}


def test_too_many_partitions_in_one_insert(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY tuple() PARTITION BY a")
    tested.insert(INTO_T, rows(*range(200)), **NOT_WAITING)
    tested.insert(INTO_T, rows(500), **NOT_WAITING)
    [letter] = letters.come()
    assert (letter["code"], letter["rows"]) == (TOO_MANY_PARTS, 200)
    eventually(lambda: ids(direct) == [500], "the other insert is stored")


def test_text_is_kept_as_it_came(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, v Variant(String, UInt64), CONSTRAINT small CHECK a < 1000")
    payload = '{"a":1000,"v":"x"}\n{"a":2,"v":7}\n'
    tested.insert(INTO_T, payload, **NOT_WAITING)
    [letter] = letters.come()
    assert letters.show(letter)["kept_as"] == "JSONEachRow"
    assert letters.payload(letter).decode().split() == payload.split()
    assert [row["a"] for row in letters.rows(letter)] == [1000, 2]
    relax(direct)
    letters.retry(ids=[letter["id"]])
    eventually(lambda: ids(direct) == [2, 1000], "the rows are there")


def test_text_of_a_table_that_is_gone_is_shown_as_strings(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, v Variant(String, UInt64)")
    tested.insert("INSERT INTO t FORMAT CSVWithNames", 'a,v\n1,"x y"\n', **HELD_NOT_WAITING)
    direct.sql("DROP TABLE t SYNC")
    flush(tested)
    [letter] = letters.come()
    assert letters.payload(letter).startswith(b"a,v\n")
    assert letters.rows(letter) == [{"a": "1", "v": "x y"}]


# Retry and discard


def test_only_what_is_selected_is_retried(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    for table in ("t", "u"):
        make_table(direct, SMALL, table)
        for number in (1001, 1002):
            tested.insert(f"INSERT INTO {table} FORMAT JSONEachRow", rows(number), **NOT_WAITING)
    letters.come(4)
    direct.sql("ALTER TABLE t DROP CONSTRAINT small")
    direct.sql("ALTER TABLE u DROP CONSTRAINT small")
    assert letters.retry(table="t", code=VIOLATED_CONSTRAINT)["retried"] == 2
    eventually(lambda: ids(direct) == [1001, 1002], "the rows of t are there")
    assert [letter["table"] for letter in letters.all()] == ["u", "u"] and ids(direct, "u") == []
    assert letters.retry(user="nobody") == {"selected": 0, "retried": 0, "failed": []}
    assert letters.retry(until="1h")["selected"] == 0 and letters.retry(since="1h")["retried"] == 2
    eventually(lambda: ids(direct, "u") == [1001, 1002], "the rows of u are there")


def test_what_fails_again_is_a_letter_again(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    tested.insert(INTO_T, rows(1001), query_id="mine", **NOT_WAITING)
    [first] = letters.come()
    assert letters.retry(ids=[first["id"]])["retried"] == 1
    [second] = eventually(lambda: [one for one in letters.all() if one["id"] != first["id"]], "it is a letter again")
    assert second["attempts"] == first["attempts"] + 1
    same = ("arrived", "user", "rows", "bytes", "format", "query", "query_id", "code")
    assert [second[name] for name in same] == [first[name] for name in same]
    assert second["failed"] > first["failed"]
    relax(direct)
    letters.retry(ids=[second["id"]])
    eventually(lambda: ids(direct) == [1001], "the row is there, once")
    assert letters.all() == []


def test_letters_of_a_user_who_may_not_insert_any_more(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    """They are stored with the gateway's own account; the letter still says whose insert it was."""
    make_table(direct, SMALL)
    ann = tested.as_user(ANN.name, ANN.password)
    ann.insert(INTO_T, rows(1001), **NOT_WAITING)
    [letter] = letters.come()
    assert letter["user"] == ANN.name
    letters.retry(ids=[letter["id"]])
    [again] = eventually(lambda: [one for one in letters.all() if one["id"] != letter["id"]], "it is a letter again")
    assert again["user"] == ANN.name
    relax(direct)
    letters.retry(user=ANN.name)
    eventually(lambda: ids(direct) == [1001], "the row is there")


def test_discarded_letters_are_gone(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    for number in (1001, 1002, 1003):
        tested.insert(INTO_T, rows(number), **NOT_WAITING)
    found = letters.come(3)
    assert letters.discard(ids=[found[1]["id"]]) == {"selected": 1, "discarded": 1}
    assert [one["id"] for one in letters.all()] == [found[0]["id"], found[2]["id"]]
    assert letters.ask(f"/{found[1]['id']}").status == 404
    assert letters.discard(table="t") == {"selected": 2, "discarded": 2}
    assert letters.all() == [] and ids(direct) == []


# Questions


def test_lists_have_conditions_and_pages(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    for number in range(1001, 1006):
        tested.insert(INTO_T, rows(number), **NOT_WAITING)
    all_ids = [one["id"] for one in letters.come(5)]
    page = letters.listing(limit=2, offset=1)
    assert (page["total"], [one["id"] for one in page["letters"]]) == (5, all_ids[::-1][1:3]), "the latest first"
    assert letters.listing(code=60)["total"] == 0
    assert letters.listing(id=f"{all_ids[0]},{all_ids[3]}")["total"] == 2
    assert letters.listing(since="1h", table=f"{letters.database}.t", user=TESTER.name)["total"] == 5
    assert letters.listing(until="2020-01-01 00:00:00")["total"] == 0


@pytest.mark.parametrize(
    ("path", "method", "body", "kind", "status"),
    [
        ("?limit=many", "GET", None, "", 400),
        ("?tabel=t", "GET", None, "", 400),
        ("?since=never", "GET", None, "", 400),
        ("/none", "GET", None, "", 404),
        ("/999999999", "GET", None, "", 404),
        ("/999999999/rows", "GET", None, "", 404),
        ("/1/zork", "GET", None, "", 404),
        ("/retry", "GET", None, "", 404),
        ("", "POST", {"all": True}, "application/json", 405),
        ("/discard", "POST", {}, "application/json", 400),
        ("/discard", "POST", {"ids": []}, "application/json", 400),
        ("/discard", "POST", {"all": True}, "text/plain", 415),
        ("/retry", "POST", {"all": True}, "application/x-www-form-urlencoded", 415),
    ],
)
def test_requests_that_make_no_sense(
    letters: DeadLetters, path: str, method: str, body: object, kind: str, status: int
) -> None:
    said = letters.ask(path, method, body, kind)
    assert said.status == status and said.json()["error"], said


def test_in_any_select(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    direct.sql("CREATE TABLE codes (code Int32, means String) ENGINE = Memory")
    direct.sql(f"INSERT INTO codes VALUES ({VIOLATED_CONSTRAINT}, 'violated')")
    tested.insert(INTO_T, rows(1001, 1002), **NOT_WAITING)
    letters.come()
    query = (
        "SELECT l.table, l.rows, l.ack, toTypeName(l.arrived), c.means FROM system.windrow_dead_letters AS l "
        "JOIN codes AS c USING code WHERE l.database = currentDatabase()"
    )
    assert tested.sql(query) == "t\t2\tdisk\tDateTime64(6)\tviolated"


def test_users_see_their_own_letters_in_sql(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    count = f"SELECT count() FROM system.windrow_dead_letters WHERE database = '{letters.database}'"
    ann = tested.as_user(ANN.name, ANN.password)
    for user in (tested, ann):
        reply = user.insert(INTO_T, rows(1001), **NOT_WAITING)
        assert reply.status == 200, reply.text
    letters.come(2)
    assert (tested.sql(count), ann.sql(count)) == ("2", "1")
    refused = tested.as_user(JOE.name, JOE.password).request(count)
    assert refused.status != 200, "who may not read system tables may not read this one"


# What they survive, and their bounds


def test_letters_survive_a_restart_and_a_kill(start_gateway) -> None:
    gateway, letters = own(start_gateway)
    make_table(gateway.direct, SMALL)
    tester = gateway.http.as_user(TESTER.name, TESTER.password)
    for number in (1001, 1002):
        tester.insert(INTO_T, rows(number), **NOT_WAITING)
    before = letters.come(2)
    assert gateway.stop() == 0
    gateway.start()
    assert letters.all() == before
    letters.discard(ids=[before[0]["id"]])
    gateway.kill()
    gateway.start()
    assert letters.all() == before[1:]
    relax(gateway.direct)
    assert letters.retry(table="t")["retried"] == 1
    gateway.kill()
    gateway.start()
    eventually(lambda: ids(gateway.direct) == [1002], "what was retried is stored after the crash, once")
    assert letters.all() == []


def test_files_are_for_their_owner_only_and_hold_no_password(start_gateway) -> None:
    gateway, letters = own(start_gateway)
    make_table(gateway.direct, SMALL)
    gateway.http.as_user(TESTER.name, TESTER.password).insert(INTO_T, rows(1001), **NOT_WAITING)
    letters.come()
    folder = gateway.data_dir / "dead-letters"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert files and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    content = b"".join(file.read_bytes() for file in files)
    assert b"small" in content and TESTER.password.encode() not in content


def test_the_admin_token_is_asked_for(start_gateway) -> None:
    gateway, letters = own(start_gateway, '[admin]\ntoken = "secret"\n')
    assert [letters.ask(path).status for path in ("", "/1", "/1/payload")] == [401] * 3
    assert letters.ask("/discard", "POST", {"all": True}).status == 401
    known = DeadLetters(gateway, "default", token="secret")
    assert known.listing()["total"] == 0
    assert known.command("list").out == "no dead letters\n", "the command takes the token from the settings"


def test_at_the_bound_their_table_takes_no_more(start_gateway) -> None:
    """Nothing is thrown away: what failed behind the bound is kept until there is room, and new inserts are refused."""
    gateway, letters = own(start_gateway, "[dead_letters]\nmax_bytes = 1048576\n")
    tester = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct, "a UInt64, s String, CONSTRAINT small CHECK a < 1000")
    make_table(gateway.direct, SMALL, "u")
    large = json.dumps({"a": 1000, "s": "x" * 600_000}) + "\n"

    def refused() -> bool:
        return tester.insert(INTO_T, large, **NOT_WAITING).status == 503

    eventually(refused, "the table takes no more")
    before = letters.come(2)
    told = tester.insert(INTO_T, rows(1), **NOT_WAITING)
    assert told.status == 503 and "dead letters" in told.text and told.headers["retry-after"]
    assert tester.insert(INTO_T, rows(2), async_insert=1).status == 200, "who waits is no danger"
    assert tester.insert("INSERT INTO u FORMAT JSONEachRow", rows(1), **NOT_WAITING).status == 200
    relax(gateway.direct)
    assert letters.retry(ids=[before[0]["id"]])["failed"] == [], "a full store can be emptied by retrying"
    letters.discard(ids=[before[1]["id"]])

    def taken_again() -> bool:
        # What found no room comes in as soon as there is some, and may fill it again.
        letters.discard(table="t")
        return tester.insert(INTO_T, rows(3), **NOT_WAITING).status == 200

    eventually(taken_again, "there is room again")
    eventually(lambda: ids(gateway.direct) == [2, 3, 1000], "they are stored")


def test_old_letters_are_discarded(start_gateway) -> None:
    gateway, letters = own(start_gateway, "[dead_letters]\nmax_age_ms = 1000\n")
    make_table(gateway.direct, SMALL)
    gateway.http.as_user(TESTER.name, TESTER.password).insert(INTO_T, rows(1001), **NOT_WAITING)
    metrics = gateway.admin
    expired = 'windrow_dead_letters_gone_total{how="expired"} 1'

    def is_counted() -> bool:
        connection = RawConnection(metrics)
        try:
            return expired in connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text
        finally:
            connection.close()

    eventually(is_counted, "the letter is too old")
    assert letters.all() == []


def test_a_flood_of_bad_inserts_stops_no_good_ones(start_gateway) -> None:
    """Nor does a good one become a letter with thousands of bad ones."""
    gateway, letters = own(start_gateway)
    make_table(gateway.direct, SMALL)
    tester = gateway.http.as_user(TESTER.name, TESTER.password)
    bad = [rows(number) for number in range(1000, 11_000)]
    good = [rows(number, number + 500) for number in range(100)]
    mixed = [payload for at, one in enumerate(bad) for payload in ([one] if at % 100 else [one, good[at // 100]])]
    send_pipelined(tester, mixed)
    # It waits, and stands in the table at once, however long the search for the bad ones takes.
    assert tester.insert(INTO_T, rows(300), async_insert=1).status == 200
    assert 300 in ids(gateway.direct)
    flush(tester)
    assert ids(gateway.direct) == sorted([*range(100), 300, *range(500, 600)])
    eventually(lambda: letters.listing()["total"] == len(bad), "every bad insert is a letter")


def send_pipelined(tester: Endpoint, payloads: list[str]) -> None:
    fixed = (("Host", "x"), ("Authorization", tester.basic_auth()))
    target = tester.target(INTO_T, NOT_WAITING)
    request = lambda body: head("POST", target, (*fixed, ("Content-Length", str(len(body))))) + body.encode()
    connections = [RawConnection(tester) for _ in range(20)]
    shares = [payloads[start::20] for start in range(20)]
    for connection, share in zip(connections, shares):
        connection.send(b"".join(map(request, share)))
    for connection, share in zip(connections, shares):
        assert {connection.read_reply().status for _ in share} == {200}
        connection.close()


# The command line


def test_the_command_line(letters: DeadLetters, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, SMALL)
    for number in (1001, 1002):
        tested.insert(INTO_T, rows(number), **NOT_WAITING)
    first, second = letters.come(2)
    where = ("--table", f"{letters.database}.t")
    listed = letters.command("list", *where).out.splitlines()
    assert listed[0].split() == "id failed table from rows bytes attempts code error".split()
    assert [line.split()[0] for line in listed[1:3]] == [str(second["id"]), str(first["id"])]
    assert listed[3] == "2 dead letters"
    assert letters.command("list", *where, "--format", "json").json() == letters.listing(table="t")
    shown = letters.command("show", str(first["id"])).out
    assert "Constraint `small`" in shown and '{"a":1001}' in shown
    assert letters.command("show", str(first["id"]), "--format", "json").json()["data"] == [{"a": 1001}]
    assert letters.command("show", "999999999").code == 1
    nothing = letters.command("discard")
    assert nothing.code == 1 and "--all" in nothing.errors
    assert letters.command("discard", str(first["id"])).out == "1 of 1 dead letters discarded\n"
    relax(direct)
    assert letters.command("retry", *where, "--code", str(VIOLATED_CONSTRAINT)).out == "1 of 1 dead letters retried\n"
    eventually(lambda: ids(direct) == [1002], "the row is there")
    assert letters.command("list", *where).out == "no dead letters\n"


def test_without_a_gateway_the_files_are_read(start_gateway) -> None:
    gateway, letters = own(start_gateway)
    make_table(gateway.direct, SMALL)
    tester = gateway.http.as_user(TESTER.name, TESTER.password)
    for number in (1001, 1002):
        tester.insert(INTO_T, rows(number), **NOT_WAITING)
    before = letters.come(2)
    letters.discard(ids=[before[0]["id"]])
    listing, shown = letters.listing(), letters.show(before[1])
    payload = letters.payload(before[1])
    assert gateway.stop() == 0
    printed = letters.command("list", "--format", "json")
    assert printed.json() == listing and "no gateway answers" in printed.errors
    assert letters.command("show", str(before[1]["id"]), "--format", "json").json() == shown
    assert letters.command("show", str(before[1]["id"]), "--payload").raw == payload
    refused = letters.command("retry", "--all")
    assert refused.code == 1 and "only a running gateway" in refused.errors
