"""Functions in what a table computes: a row that is gathered is the row that ClickHouse stores when it is asked itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from clients.routes import gathered_by_table
from harness.endpoint import ClickHouseError, Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.paths import ROOT

TRUSTED = ROOT / "core" / "gateway" / "src" / "admission" / "clickhouse_functions.txt"

# What depends on the time, on chance or on what other tables hold is computed when the batch is stored.
OF_TIME = set("curdate current_date current_timestamp localtime localtimestamp now now64 nowInBlock nowInBlock64 today "
    "UTC_timestamp UTCTimestamp yesterday".split())  # fmt: skip
OF_CHANCE = set("arrayPartialShuffle arrayRandomSample arrayShuffle dateTimeToUUIDv7 fuzzBits generateSnowflakeID generateUUIDv4 "
    "generateUUIDv7 rand rand32 rand64 randBernoulli randBinomial randCanonical randChiSquared randExponential randFisherF randLogNormal "
    "randNegativeBinomial randNormal randPoisson randStudentT randUniform randomFixedString randomPrintableASCII randomString "
    "randomStringUTF8".split())  # fmt: skip
COMBINATORS = "ArgMax|ArgMin|Array|Distinct|ForEach|If|Map|Merge|OrDefault|OrNull|Resample|SimpleState|State"
OF_TABLES = ("dict", "joinGet", "region")
# ClickHouse calls them non-deterministic or says nothing, and they depend on their arguments alone.
OF_THE_ROW = {"arrayPartialReverseSort", "arrayPartialSort", "financialNetPresentValueExtended"}
# ClickHouse calls them deterministic, and they depend on the server, the session, or the rows beside their own.
NOT_OF_THE_ROW = set("addressToLine addressToLineWithInlines addressToSymbol demangle getMaxTableNameLengthForDatabase "
    "getTypeSerializationStreams globalVariable hasThreadFuzzer logTrace runningConcurrency showCertificate sleep sleepEachRow tid "
    "timezone timeZone timezoneOf timeZoneOf".split())  # fmt: skip


def trusted() -> dict[str, bool]:
    """By name, whether in any case."""
    lines = TRUSTED.read_text().splitlines()
    return {line.rstrip("*"): line.endswith("*") for line in lines}


def test_functions_are_trusted_by_name(direct: Endpoint) -> None:
    """Each function of ClickHouse's is trusted or not, and for a reason."""
    lines = direct.sql(
        "SELECT name, case_insensitive, is_aggregate OR ifNull(deterministic, 0) FROM system.functions WHERE origin = 'System' FORMAT TSVRaw"
    ).split("\n")
    functions = {name: (ignores_case == "1", deterministic == "1") for name, ignores_case, deterministic in (line.split("\t") for line in lines)}
    known = trusted()
    wanted = {}
    for name, (ignores_case, deterministic) in functions.items():
        of_more = name in OF_TIME | OF_CHANCE | OF_THE_ROW or name.startswith(OF_TABLES)
        if of_more or deterministic and name not in NOT_OF_THE_ROW:
            wanted[name.lower() if ignores_case else name] = ignores_case
    assert known == wanted
    # What ends like `sumIf` is taken for an aggregate function of that kind.
    aggregates = [re.sub(f"({COMBINATORS})+$", "", name) for name in functions.keys() - set(known)]
    assert not [name for name in aggregates if name not in functions and (name in known or name.lower() in known)]
    assert OF_TIME | OF_CHANCE | OF_THE_ROW | NOT_OF_THE_ROW <= functions.keys()


ARGUMENTS = ("", "n", "s", "'max_threads'", "'X-Tag'", "'default'", "'default', 'x', 'y'", "n, n", "s, s", "[n]", "[n], 1", "n, s")


def untrusted(direct: Endpoint) -> list[str]:
    names = direct.sql("SELECT name FROM system.functions WHERE NOT is_aggregate AND origin = 'System' ORDER BY name").split("\n")
    known = trusted()
    return [name for name in names if not (name in known or known.get(name.lower()))]


def created(direct: Endpoint, table: str, function: str) -> bool:
    """A table with a column that calls the function, if that can be."""
    for arguments in ARGUMENTS:
        try:
            direct.sql(
                f"CREATE TABLE {table} (n UInt32, s String, d String DEFAULT toString({function}({arguments}))) ENGINE = Memory",
                allow_get_client_http_header=1,
                allow_introspection_functions=1,
            )
            return True
        except ClickHouseError:
            continue
    return False


def test_untrusted_functions_are_forwarded(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Under each of their names. Rows that bring the column are gathered, since nothing is computed then."""
    made = [name for name in untrusted(direct) if created(direct, f"t_{name}", name)]
    assert len(made) > 60, made
    for name in made:
        # What can't be computed is ClickHouse's to refuse.
        tested.insert(f"INSERT INTO t_{name} (n) FORMAT JSONEachRow", '{"n":1}')
    assert gathered_by_table(gateway, direct.database) == {}
    given = [name for name in made[::10] if direct.insert(f"INSERT INTO t_{name} FORMAT JSONEachRow", '{"n":1}').status == 200]
    for name in given:
        for row in ('{"n":2,"d":"given"}', '{"n":3}'):
            reply = tested.insert(f"INSERT INTO t_{name} FORMAT JSONEachRow", row)
            assert reply.status == 200, reply.text
    assert gathered_by_table(gateway, direct.database) == {f"t_{name}": 1 for name in given}


# With a value that can be told beforehand, or is the same for two requests of one name.
CALLS = (
    "getClientHTTPHeader('X-Tag')", "queryID()", "query_id()", "initialQueryID()", "currentUser()", "CURRENT_USER", "user()", "authenticatedUser()",
    "currentDatabase()", "DATABASE()", "getSetting('max_threads')", "getSettingOrDefault('log_comment', 'none')", "connectionId()", "hostName()",
    "arrayStringConcat(currentRoles())", "getMaxTableNameLengthForDatabase('default')", "rowNumberInBlock()", "timezone()",
)  # fmt: skip
# Of those, for the ways by which a function is called.
FEW = ("getClientHTTPHeader('X-Tag')", "queryID()", "CURRENT_USER", "getSetting('max_threads')", "rowNumberInBlock()", "timezone()")
# What of a table calls a function, and the columns that an insert names.
COMPUTED = {
    "default": ("d String DEFAULT toString({})", ""),
    "materialized": ("d String MATERIALIZED toString({})", ""),
    "alias": ("a String ALIAS toString({}), d String DEFAULT lower(a)", ""),
    "chained": ("a String DEFAULT toString({}), d String DEFAULT lower(a)", ""),
    "ephemeral": ("e String EPHEMERAL toString({}), d String DEFAULT lower(e)", ""),
    "listed": ("e UInt8 EPHEMERAL, d String DEFAULT concat(toString(e), toString({}))", "(n, e)"),
    "of_a_user": ("d String DEFAULT as_text({})", ""),
}
REQUEST = {"max_threads": 3, "log_comment": "mine", "allow_get_client_http_header": 1, "query_id": "named"}


@pytest.fixture
def as_text(direct: Endpoint) -> Iterator[None]:
    direct.sql("CREATE FUNCTION IF NOT EXISTS as_text AS x -> toString(x)")
    yield
    direct.sql("DROP FUNCTION IF EXISTS as_text")


def rows_of(endpoint: Endpoint, table: str, statement: str, rows: str, read: str = "n, d") -> str:
    """What an insert into an empty table leaves there, or the code of its error. It comes from another database than the table's."""
    headers = {"X-Tag": "of the request"}
    target = f"{endpoint.database}.{table}"
    elsewhere = endpoint.using("default")
    # ClickHouse answers before it has done with a query, and takes none of the same id until then.
    running = "SELECT count() FROM system.processes WHERE query_id = 'named'"
    eventually(lambda: elsewhere.sql(running) == "0", "the one before has ended")
    reply = elsewhere.request(f"INSERT INTO {target} {statement}", rows.encode(), REQUEST, headers=headers)
    if reply.status != 200:
        return f"code {reply.code}"
    return elsewhere.sql(f"SELECT {read} FROM {target} ORDER BY n", allow_get_client_http_header=1)


@pytest.mark.usefixtures("as_text")
@pytest.mark.parametrize("how", COMPUTED)
def test_computed_as_clickhouse_computes_it(tested: Endpoint, direct: Endpoint, how: str) -> None:
    columns, listed = COMPUTED[how]
    for number, call in enumerate(CALLS if how == "default" else FEW):
        stored = []
        for side, endpoint in (("s", direct), ("g", tested)):
            table = f"t_{number}_{side}"
            direct.sql(f"CREATE TABLE {table} (n UInt32, {columns.format(call)}) ENGINE = Memory", allow_get_client_http_header=1)
            rows = '{"n":1,"e":2}{"n":2}' if listed else '{"n":1}{"n":2}'
            stored.append(rows_of(endpoint, table, f"{listed} FORMAT JSONEachRow", rows))
        assert stored[1] == stored[0], call


def test_values_as_clickhouse_reads_them(tested: Endpoint, direct: Endpoint) -> None:
    for number, call in enumerate(CALLS):
        stored = []
        for side, endpoint in (("s", direct), ("g", tested)):
            direct.sql(f"CREATE TABLE t_{number}_{side} (n UInt32, d String) ENGINE = Memory")
            stored.append(rows_of(endpoint, f"t_{number}_{side}", "VALUES", f"(1, toString({call})), (2, 'x')"))
        assert stored[1] == stored[0], call


def test_constraints_and_views_see_the_request(tested: Endpoint, direct: Endpoint) -> None:
    """A constraint that only the request itself fulfils, and a view that shows the request."""
    for number, call in enumerate(call for call in CALLS if call not in ("CURRENT_USER", "rowNumberInBlock()", "hostName()")):
        stored = []
        for side, endpoint in (("s", direct), ("g", tested)):
            direct.sql(f"CREATE TABLE seen_{number}_{side} (n UInt32, d String) ENGINE = Memory")
            direct.sql(f"CREATE TABLE v_{number}_{side} (n UInt32) ENGINE = Memory")
            to = f"CREATE MATERIALIZED VIEW view_{number}_{side} TO seen_{number}_{side} AS SELECT n, toString({call}) AS d"
            direct.sql(f"{to} FROM v_{number}_{side}", **REQUEST)
            rows_of(endpoint, f"v_{number}_{side}", "FORMAT JSONEachRow", '{"n":1}', "n")
            seen = direct.sql(f"SELECT n, d FROM seen_{number}_{side}")
            fulfilled = seen.partition("\t")[2].replace("'", "''")
            direct.sql(
                f"CREATE TABLE c_{number}_{side} (n UInt32, CONSTRAINT asks CHECK toString({call}) = '{fulfilled}') ENGINE = Memory",
                allow_get_client_http_header=1,
            )
            stored.append((seen, rows_of(endpoint, f"c_{number}_{side}", "FORMAT JSONEachRow", '{"n":1}', "n")))
        assert stored[1] == stored[0], call
        assert stored[0][1] == "1", call


def test_everyday_expressions_are_gathered(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql(
        "CREATE TABLE t (n UInt32, user String, at DateTime DEFAULT now(), day Date MATERIALIZED toDate(at), id UUID DEFAULT generateUUIDv4(), "
        "u String DEFAULT upper(user), l LowCardinality(String) DEFAULT if(n > 3 AND NOT (n IN (7, 8)), 'large', 'small'), "
        "k UInt64 DEFAULT cityHash64(user, n), c Decimal(9, 2) DEFAULT CAST(n, 'Decimal(9, 2)'), m Map(String, String) DEFAULT map('a', user), "
        "CONSTRAINT few CHECK (n < 1000) OR (user LIKE 'a%'), CONSTRAINT named CHECK user != '') ENGINE = MergeTree ORDER BY n"
    )
    for number in range(3):
        reply = tested.insert("INSERT INTO t (n, user) FORMAT JSONEachRow", f'{{"n":{number},"user":"ann"}}')
        assert reply.status == 200, reply.text
    assert gathered_by_table(gateway, direct.database) == {"t": 3}
    assert direct.sql("SELECT DISTINCT u, l, c, m FROM t WHERE n = 2") == "ANN\tsmall\t2\t{'a':'ann'}"
