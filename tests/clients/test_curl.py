"""curl, as people type it."""

from __future__ import annotations

import gzip
import subprocess
from dataclasses import dataclass
from urllib.parse import quote_plus

import pytest

from harness.endpoint import Endpoint


@dataclass(frozen=True)
class Curl:
    endpoint: Endpoint

    def __call__(self, *arguments: str, parameters: str = "", data: bytes | None = None) -> str:
        """Standard output of curl; `data` is what it sends as body."""
        url = f"{self.endpoint.url}?database={self.endpoint.database}{parameters}"
        user = ["-u", f"{self.endpoint.user}:{self.endpoint.password}"]
        body = ["--data-binary", "@-"] if data is not None else []
        command = ["curl", "-sS", "--max-time", "60", *user, *arguments, *body, url]
        ended = subprocess.run(command, input=data or b"", capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode()

    def query(self, text: str, *arguments: str, parameters: str = "", data: bytes | None = None) -> str:
        return self(*arguments, parameters=f"&query={quote_plus(text)}{parameters}", data=data)


@pytest.fixture
def curl(tested: Endpoint) -> Curl:
    tested.sql("CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
    return Curl(tested)


def test_query_in_the_url(curl: Curl) -> None:
    assert curl.query("SELECT 1, 'x'") == "1\tx\n"


def test_query_in_the_body(curl: Curl) -> None:
    assert curl(data=b"SELECT 1 FORMAT JSONEachRow") == '{"1":1}\n'


def test_insert_with_rows_in_the_body(curl: Curl) -> None:
    assert curl.query("INSERT INTO t FORMAT JSONEachRow", data=b'{"a":1,"s":"x"}\n{"a":2}') == ""
    assert curl.query("SELECT * FROM t ORDER BY a") == "1\tx\n2\t\n"


def test_insert_with_everything_in_the_body(curl: Curl) -> None:
    assert curl(data=b"INSERT INTO t VALUES (1, 'x'), (2, 'it''s')") == ""
    assert curl.query("SELECT * FROM t ORDER BY a") == "1\tx\n2\tit\\'s\n"


def test_insert_by_d_and_by_a_file(curl: Curl, tmp_path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text('1,"x"\n2,"y"\n')
    assert curl.query("INSERT INTO t FORMAT CSV", "--data-binary", f"@{rows}") == ""
    assert curl("-d", "INSERT INTO t VALUES (3, 'z')") == ""
    assert curl.query("SELECT groupArray(a) FROM (SELECT a FROM t ORDER BY a)") == "[1,2,3]\n"


def test_gzip_in_and_out(curl: Curl) -> None:
    rows = gzip.compress(b'{"a":1,"s":"zipped"}\n')
    assert curl.query("INSERT INTO t FORMAT JSONEachRow", "-H", "Content-Encoding: gzip", data=rows) == ""
    assert curl.query("SELECT s FROM t", "--compressed") == "zipped\n"


def test_head_and_ping(curl: Curl) -> None:
    assert curl.query("SELECT 1", "--head").startswith("HTTP/1.1 200 OK")
    pinged = subprocess.run(["curl", "-sS", curl.endpoint.url + "ping"], capture_output=True, text=True, check=True)
    assert pinged.stdout == "Ok.\n"


def test_error_status_and_text(curl: Curl) -> None:
    said = curl.query("SELECT * FROM nowhere", "-w", "%{http_code}")
    assert said.startswith("Code: 60. DB::Exception: ") and said.endswith("404")


def test_bad_row_names_it(curl: Curl) -> None:
    said = curl.query("INSERT INTO t FORMAT JSONEachRow", "-w", "%{http_code}", data=b'{"a":1}{"a":"x"}{"a":2}')
    assert said.startswith("Code: 27. DB::Exception: ") and said.endswith("400"), said
    assert "(at row 2)" in said
    assert curl.query("SELECT count() FROM t") == "0\n"


def test_large_body_with_expect(curl: Curl) -> None:
    """curl announces a body of over a megabyte with Expect: 100-continue."""
    rows = b"".join(b'{"a":%d,"s":"%s"}\n' % (n, b"x" * 100) for n in range(20_000))
    assert curl.query("INSERT INTO t FORMAT JSONEachRow", data=rows) == ""
    assert curl.query("SELECT count() FROM t") == "20000\n"


def test_multipart_external_table(curl: Curl, tmp_path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("1,ann\n2,bob\n")
    form = ["-F", "query=SELECT name FROM people WHERE id = 2", "-F", f"people=@{people}"]
    structure = f"&people_structure={quote_plus('id UInt8, name String')}&people_format=CSV"
    assert curl(*form, parameters=structure) == "bob\n"
