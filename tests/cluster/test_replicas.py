"""Several replicas behind a gateway: whichever of them is away, an insert is stored once, and sessions stay where they are."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from harness.eventually import eventually
from harness.inserts import INTO_T, rows
from harness.load import Load
from harness.metrics import metrics_of
from harness.middle import Fate, Middle
from harness.native import END_OF_STREAM, EXCEPTION, Native
from harness.native import numbers as number_column
from harness.paths import gateway_binary
from harness.process import inherited_environment
from harness.relay import Relay
from harness.remote import RemoteGateway
from harness.replicas import Replica

Start = Callable[..., RemoteGateway]
# A replica that was killed may have a part that its Keeper does not know, and of a small table that is most of the rows:
# from half of them on it would leave the table readonly until somebody looks. It looks for its Keeper once a minute otherwise.
SETTINGS = "SETTINGS replicated_max_ratio_of_wrong_parts = 1, initialization_retry_period = 1"
REPLICATED = f"CREATE TABLE t (a UInt64) ENGINE = ReplicatedMergeTree('/{{database}}/t/{{shard}}', '{{replica}}') ORDER BY a {SETTINGS}"
PLAIN = "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a"
ON_DISK = {"wait_for_async_insert": 0}
WHICH = "SELECT getMacro('replica')"


def make(replicas: list[Replica], statement: str = REPLICATED) -> None:
    for replica in replicas:
        replica.direct.sql(statement)


def numbers(replica: Replica) -> list[int]:
    return [int(line) for line in replica.direct.sql("SELECT a FROM t ORDER BY a").splitlines()]


def synced(replicas: list[Replica]) -> list[int]:
    """What all of them have, which is the same."""
    for replica in replicas:
        # One that was killed waits until the Keeper has forgotten who it was.
        eventually(lambda replica=replica: not is_read_only(replica), "the replica is whole again")
        replica.direct.sql("SYSTEM SYNC REPLICA t")
    first, *others = [numbers(replica) for replica in replicas]
    assert all(other == first for other in others)
    return first


def is_read_only(replica: Replica) -> bool:
    return replica.direct.sql("SELECT max(is_readonly) FROM system.replicas WHERE database = currentDatabase()") != "0"


def stored(replica: Replica, count: int) -> None:
    eventually(lambda: len(numbers(replica)) >= count, f"{count} rows are stored")


def ask(gateway: RemoteGateway, method: str, path: str, body: object = None) -> tuple[int, str]:
    """The admin port."""
    connection = http.client.HTTPConnection(gateway.admin.host, gateway.admin.port, timeout=60)
    fields = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, fields)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def seen(gateway: RemoteGateway, replica: Replica) -> dict:
    """The replica as the status shows it."""
    shown = json.loads(ask(gateway, "GET", "/api/v1/status")[1])["backend"]["replicas"]
    return next(each for each in shown if each["address"].endswith(f":{replica.native_port}"))


def drain(gateway: RemoteGateway, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), "drain", "--admin", f"{gateway.admin.host}:{gateway.admin.port}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=inherited_environment(), check=False)


@pytest.mark.parametrize("choice", ["in_order", "round_robin"])
def test_a_killed_replica_costs_no_insert(replicas: list[Replica], start_gateway: Start, choice: str) -> None:
    make(replicas)
    gateway = start_gateway(f"[backend]\nchoice = '{choice}'\n")
    first = replicas[0]
    with Load(gateway.http, **ON_DISK) as kept, Load(gateway.http, first=10_000_000) as waited:
        both = (kept, waited)
        [eventually(load.acknowledged_more(30), "inserts go on") for load in both]
        first.kill()
        [eventually(load.acknowledged_more(60), "inserts go on without it") for load in both]
        first.start()
        eventually(lambda: seen(gateway, first)["up"], "it is seen again")
        [eventually(load.acknowledged_more(30), "inserts go on with it") for load in both]
    for load in both:
        assert not load.written.refused and not load.written.uncertain
    wanted = sorted(kept.written.acknowledged + waited.written.acknowledged)
    stored(replicas[1], len(wanted))
    assert synced(replicas) == wanted


def test_what_may_be_stored_goes_to_another_one_and_is_stored_once(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    second = replicas[1]
    with Middle(replicas[0].direct.port) as middle:
        gateway = start_gateway(addresses=[middle.address, f"127.0.0.1:{second.direct.port}"])
        assert gateway.http.insert(INTO_T, rows(1)).status == 200
        middle.arm("t", Fate.SILENT_AFTER)
        duplicates = duplicates_seen(second)
        with Load(gateway.http, first=100) as waiting:
            eventually(middle.reached.is_set, "the first replica has stored a batch, and nobody hears of it")
            # What it has not fetched, a replica does not count as a duplicate.
            second.direct.sql("SYSTEM SYNC REPLICA t")
            # Its answer is lost, and it can't be asked any more.
            middle.go_away()
            middle.release()
            eventually(waiting.acknowledged_more(20), "inserts go on")
    assert not waiting.written.refused and not waiting.written.uncertain
    assert synced(replicas) == sorted([1, *waiting.written.acknowledged])
    assert duplicates_seen(second) > duplicates, "the second replica was sent the batch, and knew it"


def duplicates_seen(replica: Replica) -> int:
    return int(replica.direct.sql("SELECT sum(value) FROM system.events WHERE event = 'DuplicatedInsertedBlocks'"))


def test_a_token_that_comes_again_is_known_whichever_replica_is_asked(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway()
    token = {"insert_deduplication_token": "x", **ON_DISK}
    assert gateway.http.insert(INTO_T, rows(1), **token).status == 200
    stored(replicas[1], 1)
    replicas[0].kill()
    eventually(lambda: gateway.http.sql(WHICH) == "2", "the second one answers")
    gateway.http.sql("SELECT 1 FROM t")
    assert gateway.http.insert(INTO_T, rows(1), **token).status == 200
    assert gateway.http.insert(INTO_T, rows(2), **{**token, "insert_deduplication_token": "y"}).status == 200
    stored(replicas[1], 2)
    replicas[0].start()
    assert synced(replicas) == [1, 2]


def test_a_table_that_was_made_anew_knows_nothing_of_the_former_one(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway()
    for _ in range(2):
        assert gateway.http.insert(INTO_T, rows(1), insert_deduplication_token="x").status == 200
    assert synced(replicas) == [1]
    for replica in replicas:
        replica.direct.sql("DROP TABLE t SYNC")
    make(replicas)
    # It is seen when the table is looked at again.
    stored_anew = lambda: gateway.http.insert(INTO_T, rows(1), insert_deduplication_token="x").status == 200 and numbers(replicas[0]) == [1]  # noqa: E731
    eventually(stored_anew, "what the former table had is no repeat")
    assert gateway.http.insert(INTO_T, rows(1), insert_deduplication_token="x").status == 200
    assert synced(replicas) == [1]


def test_a_replica_without_its_keeper_gets_no_inserts(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway()
    first, second = replicas
    assert gateway.http.insert(INTO_T, rows(1)).status == 200
    stored(second, 1)
    first.to_keeper.go_away()
    for number in range(2, 30):
        assert gateway.http.insert(INTO_T, rows(number)).status == 200
    assert numbers(second) == list(range(1, 30)), "all have gone there"
    assert gateway.http.sql(WHICH) == "1", "the first one is up, and answers"
    # Until it has seen that its Keeper is away, it tries for minutes.
    eventually(lambda: is_read_only(first), "it has seen that its Keeper is away")
    for number in range(30, 32):
        # The first of them hears it from the first replica, which would else look for its Keeper again, and wait for that.
        statement = f"INSERT INTO t SELECT {number} SETTINGS insert_keeper_max_retries = 0"
        eventually(lambda statement=statement: gateway.http.request(statement).status == 200, "it is forwarded")
    assert numbers(second) == list(range(1, 32))
    first.to_keeper.behave()
    stores = lambda: gateway.http.insert(INTO_T, rows(32)).status == 200 and not seen(gateway, first)["read_only_tables"]  # noqa: E731
    eventually(stores, "it stores again")
    assert sorted(set(synced(replicas))) == list(range(1, 33))


def test_without_a_keeper_inserts_wait(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway()
    assert gateway.http.insert(INTO_T, rows(1)).status == 200
    for replica in replicas:
        replica.to_keeper.go_away()
    for number in range(2, 12):
        assert gateway.http.insert(INTO_T, rows(number), **ON_DISK).status == 200
    for replica in replicas:
        replica.to_keeper.behave()
    stored(replicas[0], 11)
    assert synced(replicas) == list(range(1, 12))


def test_a_table_that_is_not_replicated_keeps_to_the_first(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas, PLAIN)
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n")
    first, second = replicas
    for number in range(9):
        assert gateway.http.insert(INTO_T, rows(number), **ON_DISK).status == 200
    # The table has no window: a batch whose answer the kill takes away would be there twice. The last one waits for its own,
    # and all are stored in order.
    assert gateway.http.insert(INTO_T, rows(9)).status == 200
    first.kill()
    for number in range(10, 20):
        assert gateway.http.insert(INTO_T, rows(number), **ON_DISK).status == 200
    first.start()
    stored(first, 20)
    assert numbers(first) == list(range(20)) and numbers(second) == []


def test_a_table_of_the_first_alone_waits_for_it(replicas: list[Replica], start_gateway: Start) -> None:
    """The other one has never heard of it, which is no reason to refuse an insert."""
    first, second = replicas
    first.direct.sql(PLAIN)
    gateway = start_gateway("[gather]\nschema_ttl_ms = 50\nadmission_ttl_ms = 50\n")
    assert gateway.http.insert(INTO_T, rows(0), **ON_DISK).status == 200
    # Waited for, as above.
    assert gateway.http.insert(INTO_T, rows(1)).status == 200
    first.kill()
    eventually(lambda: gateway.http.sql(WHICH) == "2", "the other one answers")
    with Load(gateway.http, first=2, **ON_DISK) as load:
        eventually(load.acknowledged_more(2000), "inserts are kept, long after nobody confirms the table any more")
    assert not load.written.refused and not load.written.uncertain
    first.start()
    stored(first, 2 + len(load.written.acknowledged))
    assert second.direct.sql("EXISTS TABLE t") == "0"


def test_sessions_stay_and_the_rest_goes_around(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n")
    both = Counter(gateway.http.sql(WHICH) for _ in range(100))
    assert min(both["1"], both["2"]) > 20, both
    for name in ("one", "two", "three"):
        session = {"session_id": name}
        gateway.http.sql("CREATE TEMPORARY TABLE mine (a UInt64)", **session)
        for number in range(6):
            assert gateway.http.insert("INSERT INTO mine FORMAT JSONEachRow", rows(number), **session).status == 200
        assert gateway.http.sql("SELECT count() FROM mine", **session) == "6"


def test_a_session_goes_on_at_a_drained_replica(replicas: list[Replica], start_gateway: Start) -> None:
    gateway = start_gateway()
    session = {"session_id": "mine"}
    gateway.http.sql("CREATE TEMPORARY TABLE mine (a UInt64)", **session)
    assert drain(gateway, f"127.0.0.1:{replicas[0].native_port}").returncode == 0
    assert gateway.http.sql(WHICH) == "2"
    assert gateway.http.sql("SELECT count() FROM mine", **session) == "0"


def test_a_replica_that_lags_behind_with_the_schema(replicas: list[Replica], start_gateway: Start) -> None:
    """It does not know a column yet that the first one has: its refusal is not the last word."""
    make(replicas)
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n")
    first, second = replicas
    second.direct.sql("SYSTEM STOP REPLICATION QUEUES t")
    first.direct.sql("ALTER TABLE t ADD COLUMN b UInt64 SETTINGS alter_sync = 1")
    for number in range(10):
        row = f'{{"a":{number},"b":1}}'
        assert gateway.http.insert("INSERT INTO t (a, b) FORMAT JSONEachRow", row, **ON_DISK).status == 200
    stored(first, 10)
    second.direct.sql("SYSTEM START REPLICATION QUEUES t")
    assert synced(replicas) == list(range(10))
    assert gateway.http.sql("SELECT count() FROM system.windrow_dead_letters") == "0"


def test_a_view_into_a_replicated_table_gets_its_rows_once(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    for replica in replicas:
        replica.direct.sql("CREATE TABLE v (a UInt64) ENGINE = ReplicatedMergeTree('/{database}/v/{shard}', '{replica}') ORDER BY a")
        replica.direct.sql("CREATE MATERIALIZED VIEW to_v TO v AS SELECT a FROM t")
    with Middle(replicas[0].direct.port) as middle:
        gateway = start_gateway(addresses=[middle.address, f"127.0.0.1:{replicas[1].direct.port}"])
        for number in range(5):
            middle.arm("t", Fate.CUT_AFTER)
            assert gateway.http.insert(INTO_T, rows(number)).status == 200
    assert synced(replicas) == list(range(5))
    for replica in replicas:
        replica.direct.sql("SYSTEM SYNC REPLICA v")
        assert replica.direct.sql("SELECT count(), uniqExact(a) FROM v") == "5\t5"


def test_a_forwarded_insert_goes_in_order(replicas: list[Replica], start_gateway: Start) -> None:
    """Its table may be one of the first replica alone."""
    make(replicas, PLAIN)
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n")
    for number in range(6):
        gateway.http.sql(f"INSERT INTO t SELECT {number}", async_insert=0)
    assert numbers(replicas[0]) == list(range(6)) and numbers(replicas[1]) == []


@pytest.mark.parametrize("reached", ["natively", "over HTTP"])
def test_a_native_insert_that_is_forwarded_goes_in_order(
    replicas: list[Replica], start_gateway: Start, reached: str
) -> None:
    """Whichever replica the connection is at, and whether its rows are blocks, text or a query's."""
    make(replicas, PLAIN)
    # Named by their ports for HTTP, they have native ones that nobody can guess.
    of_http = [f"127.0.0.1:{replica.direct.port}" for replica in replicas]
    addresses = of_http if reached == "over HTTP" else None
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n", addresses=addresses)
    at_once = {"async_insert": "0"}
    for number in range(0, 12, 3):
        with Native(replace(gateway.http, port=gateway.native_port)).start() as client:
            assert run(client, WHICH) == END_OF_STREAM
            assert client.insert("INSERT INTO t VALUES", [number_column("a", [number])], 1, at_once)[-1].kind == END_OF_STREAM
            for text in (f"INSERT INTO t VALUES ({number + 1})", f"INSERT INTO t SELECT {number + 2}"):
                assert run(client, text, at_once) == END_OF_STREAM
            assert run(client, WHICH) == END_OF_STREAM
    assert numbers(replicas[0]) == list(range(12)) and numbers(replicas[1]) == []


def test_a_user_moves_nobody_elsewhere(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway()
    allowed = {"allow_custom_error_code_in_throwif": 1}
    for code, text in ((202, "Too many simultaneous queries. Maximum: 1"), (242, "Table is in readonly mode")):
        reply = gateway.http.request(None, f"SELECT throwIf(1, '{text}', {code}::Int16)".encode(), allowed)
        assert reply.code == code, reply.text
        assert gateway.http.sql(WHICH) == "1"


HEDGED = "[backend]\nhedge_reads_ms = 50\n"
#: Slow at the first replica alone, for longer than a hedge waits.
SLOW_AT_THE_FIRST = "SELECT getMacro('replica'), sleepEachRow(if(getMacro('replica') = '1', 0.5, 0)) FROM numbers(6)"


def hedges(gateway: RemoteGateway) -> tuple[float, float]:
    """How many reads a second replica was sent, and how many of them it answered."""
    now = metrics_of(gateway)
    return now.sum("windrow_hedged_reads_total"), now.sum("windrow_hedged_reads_won_total")


def running(replica: Replica, query_id: str) -> bool:
    return replica.direct.sql(f"SELECT count() FROM system.processes WHERE query_id = '{query_id}'") != "0"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_slow_read_is_answered_by_another_replica(replicas: list[Replica], start_gateway: Start, method: str) -> None:
    gateway = start_gateway(HEDGED)
    ways = {"GET": (SLOW_AT_THE_FIRST, b""), "POST": (None, SLOW_AT_THE_FIRST.encode())}
    params = {"query_id": f"slow-{method}", "cancel_http_readonly_queries_on_client_close": 1}
    reply = gateway.http.request(*ways[method], params, method=method)
    assert (reply.status, reply.text) == (200, "2\t0\n" * 6)
    assert reply.headers["x-clickhouse-query-id"] == f"slow-{method}"
    assert hedges(gateway) == (1, 1)
    if method == "GET":
        eventually(lambda: not running(replicas[0], "slow-GET"), "the connection is closed, and ClickHouse ends the query")
    # The next one on this connection.
    assert gateway.http.sql(WHICH) == "1" and hedges(gateway) == (1, 1)


def test_the_first_to_answer_counts_and_an_error_of_the_second_does_not(replicas: list[Replica], start_gateway: Start) -> None:
    first, second = replicas
    first.direct.sql("CREATE TABLE t (a UInt64) ENGINE = Memory")
    gateway = start_gateway(HEDGED)
    slow = "SELECT getMacro('replica'), count(), sleep(0.5) FROM t"
    assert gateway.http.sql(slow) == "1\t0\t0", "the second one does not know the table"
    assert hedges(gateway) == (1, 0)
    second.direct.sql("CREATE TABLE t (a UInt64) ENGINE = Memory")
    slower_at_the_second = "SELECT getMacro('replica'), count(), sleep(if(getMacro('replica') = '1', 0.3, 3)) FROM t"
    assert gateway.http.sql(slower_at_the_second) == "1\t0\t0"
    assert hedges(gateway) == (2, 0)
    fails = "SELECT throwIf(sleep(if(getMacro('replica') = '1', 0.5, 0)) = 0, getMacro('replica'))"
    both_fail = gateway.http.request(None, fails.encode())
    assert both_fail.code == 395 and "1: while" in both_fail.text, both_fail.text
    assert hedges(gateway) == (3, 0)


def test_without_a_replica_beside_it_the_slow_one_is_waited_for(replicas: list[Replica], start_gateway: Start) -> None:
    gateway = start_gateway(HEDGED)
    assert drain(gateway, f"127.0.0.1:{replicas[1].native_port}").returncode == 0
    assert gateway.http.sql("SELECT getMacro('replica'), sleep(0.2)") == "1\t0"
    assert hedges(gateway) == (0, 0)


def test_a_read_whose_replica_dies_is_answered_by_the_other(replicas: list[Replica], start_gateway: Start) -> None:
    gateway = start_gateway(HEDGED)
    with ThreadPoolExecutor(1) as pool:
        slow = "SELECT getMacro('replica'), sleepEachRow(if(getMacro('replica') = '1', 1.5, 0.5)) FROM numbers(6)"
        asked = pool.submit(lambda: gateway.http.sql(slow, query_id="dies", function_sleep_max_microseconds_per_block=0))
        eventually(lambda: running(replicas[1], "dies"), "both are asked")
        replicas[0].kill()
        assert asked.result() == "\n".join(["2\t0"] * 6)
    replicas[0].start()


def test_what_is_more_than_a_read_is_never_sent_twice(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway(HEDGED)
    slow = "sleep(0.2)"
    assert gateway.http.request(f"INSERT INTO t SELECT {slow}", method="POST").status == 200
    assert gateway.http.request(f"WITH x AS (SELECT {slow} AS a) INSERT INTO t SELECT a FROM x", method="POST").status == 200
    assert gateway.http.request(f"CREATE TABLE u ENGINE = Memory AS SELECT {slow} AS a", method="POST").status == 200
    assert gateway.http.sql(f"SELECT {slow}", session_id="s") == "0"
    assert gateway.http.sql(f"SELECT {slow}", query_id="x", replace_running_query=1) == "0"
    assert hedges(gateway) == (0, 0)
    assert gateway.http.sql(f"SELECT {slow}") == "0"
    assert hedges(gateway)[0] == 1


def test_a_native_connection_stays(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n")
    endpoint = replace(gateway.http, port=gateway.native_port)
    for _ in range(3):
        with Native(endpoint).start() as client:
            assert run(client, "CREATE TEMPORARY TABLE mine (a UInt64)") == END_OF_STREAM
            for _ in range(4):
                assert run(client, "INSERT INTO mine SELECT 1") == END_OF_STREAM


def run(client: Native, statement: str, settings: dict[str, str] | None = None) -> int:
    client.send(client.query(statement, settings) + client.data())
    return client.up_to(END_OF_STREAM, EXCEPTION)[-1].kind


def test_a_drained_replica_gets_nothing_new(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    gateway = start_gateway("[backend]\nchoice = 'round_robin'\n")
    first, second = (f"127.0.0.1:{replica.native_port}" for replica in replicas)
    shown = drain(gateway)
    assert shown.returncode == 0 and shown.stdout.count(" up, ") == 2, shown
    assert drain(gateway, first).stdout.startswith(f"tcp://{first}  drained, 0 requests under way\n")
    assert {gateway.http.sql(WHICH) for _ in range(6)} == {"2"}
    queries = inserts_of(replicas[0])
    for number in range(20):
        assert gateway.http.insert(INTO_T, rows(number), **ON_DISK).status == 200
    stored(replicas[1], 20)
    assert inserts_of(replicas[0]) == queries
    refused = drain(gateway, second)
    assert refused.returncode == 1 and "the last replica that is not drained" in refused.stderr, refused
    unknown = drain(gateway, "nobody:1")
    assert unknown.returncode == 1 and "there is no replica" in unknown.stderr and first in unknown.stderr, unknown
    metrics = ask(gateway, "GET", "/metrics")[1]
    assert f'windrow_replica_drained{{replica="tcp://{first}"}} 1' in metrics, metrics
    assert f'windrow_replica_up{{replica="tcp://{second}"}} 1' in metrics
    assert drain(gateway, f"tcp://{first}", "--undo").returncode == 0
    assert {gateway.http.sql(WHICH) for _ in range(6)} == {"1", "2"}
    assert synced(replicas) == list(range(20))


def inserts_of(replica: Replica) -> int:
    return int(replica.direct.sql("SELECT sum(value) FROM system.events WHERE event = 'InsertQuery'"))


def test_draining_waits_for_what_is_under_way(replicas: list[Replica], start_gateway: Start) -> None:
    gateway = start_gateway()
    first = f"127.0.0.1:{replicas[0].native_port}"
    endpoint = replace(gateway.http, port=gateway.native_port)
    with Native(endpoint).start() as client:
        assert run(client, "CREATE TEMPORARY TABLE mine (a UInt64)") == END_OF_STREAM
        assert " drained, " in drain(gateway, first, "--no-wait").stdout
        with ThreadPoolExecutor(1) as beside:
            waiting = beside.submit(drain, gateway, first)
            for _ in range(20):
                assert run(client, "INSERT INTO mine SELECT 1") == END_OF_STREAM, "what it has begun it brings to an end"
                assert not waiting.done()
            client.__exit__()
            assert " drained, 0 requests under way" in waiting.result().stdout


def test_an_order_that_is_not_understood_changes_nothing(replicas: list[Replica], start_gateway: Start) -> None:
    gateway = start_gateway()
    where = "/api/v1/replicas/drain"
    first = f"127.0.0.1:{replicas[0].native_port}"
    for body in ({}, {"address": first}, {"address": first, "drained": 1}, {"address": first, "drained": True, "x": 1}, [], "x"):
        status, answer = ask(gateway, "POST", where, body)
        assert status == 400 and "drained" in answer, body
    assert ask(gateway, "POST", where)[0] == 415
    assert not any(seen(gateway, replica)["drained"] for replica in replicas)


def test_a_replica_that_has_not_found_its_keeper_yet(replicas: list[Replica], start_gateway: Start) -> None:
    """It answers, and its tables are not initialized: who asks it first is not refused."""
    make(replicas)
    first, second = replicas
    first.kill()
    first.to_keeper.go_away()
    first.start()
    gateway = start_gateway()
    for number in range(10):
        assert gateway.http.insert(INTO_T, rows(number), **(ON_DISK if number % 2 else {})).status == 200
    stored(second, 10)
    first.to_keeper.behave()
    assert synced(replicas) == list(range(10))


def test_no_replica_is_there_at_first(replicas: list[Replica], start_gateway: Start) -> None:
    make(replicas)
    for replica in replicas:
        replica.kill()
    gateway = start_gateway(addresses=[f"127.0.0.1:{replica.direct.port}" for replica in replicas])
    assert gateway.ready().status == 503
    assert gateway.http.insert(INTO_T, rows(1)).status == 503
    # One is enough.
    replicas[1].start()
    eventually(lambda: gateway.ready().status == 200, "it is ready")
    assert gateway.http.insert(INTO_T, rows(1)).status == 200
    replicas[0].start()
    assert synced(replicas) == [1]


def test_a_network_that_is_cut(replicas: list[Replica], start_gateway: Start) -> None:
    """Nothing is refused, nothing answers: what is under way at that replica goes to the other one."""
    make(replicas)
    with Relay(replicas[0].direct.port, seed=0) as network:
        gateway = start_gateway(addresses=[network.address, f"127.0.0.1:{replicas[1].direct.port}"])
        with Load(gateway.http, **ON_DISK) as kept, Load(gateway.http, first=10_000_000) as waited:
            both = (kept, waited)
            [eventually(load.acknowledged_more(30), "inserts go on") for load in both]
            network.hang()
            [eventually(load.acknowledged_more(60), "inserts go on without it") for load in both]
            network.behave()
            [eventually(load.acknowledged_more(30), "inserts go on with it") for load in both]
        assert not any(load.written.refused or load.written.uncertain for load in both)
        wanted = sorted(kept.written.acknowledged + waited.written.acknowledged)
        stored(replicas[1], len(wanted))
        assert synced(replicas) == wanted
