"""Rows in each of the formats that Windrow reads for databases that read none, as ClickHouse writes them."""

from __future__ import annotations

from harness.endpoint import Endpoint

ROWS = 300
FORMATS = [
    "JSONEachRow",
    "JSONCompactEachRow",
    "JSONCompactEachRowWithNamesAndTypes",
    "CSV",
    "CSVWithNames",
    "CSVWithNamesAndTypes",
    "TSV",
    "TSVWithNames",
    "TSVWithNamesAndTypes",
    "Values",
    "RowBinary",
    "RowBinaryWithNames",
    "RowBinaryWithNamesAndTypes",
    "Native",
    "ArrowStream",
    "Parquet",
]


def source_of_everything(oracle: Endpoint, columns: list[tuple[str, str, str, str]]) -> Endpoint:
    """Makes a table `source` in a ClickHouse. The first of each column's texts is its name, the second its type in
    ClickHouse, the last an expression of a row's number."""
    named = ", ".join(f"{name} {kind}" for name, kind, _, _ in columns)
    oracle.sql(f"CREATE TABLE source ({named}) ENGINE = Memory")
    values = ", ".join(value for _, _, _, value in columns)
    oracle.sql(f"INSERT INTO source SELECT {values} FROM numbers({ROWS})")
    return oracle


def expect_the_rows_of(source: Endpoint, form: str, database: Endpoint, table: str) -> None:
    query = f"SELECT * FROM source ORDER BY n FORMAT {form}"
    payload = source.request(query, settings={"output_format_arrow_string_as_string": 1})
    reply = database.insert(f"INSERT INTO {table} FORMAT {form}", payload.body)
    assert reply.status == 200, reply.text
    assert reply.summary["written_rows"] == str(ROWS)
    rows = "SELECT * FROM {} ORDER BY n FORMAT JSONCompactEachRow"
    assert database.sql(rows.format(table)) == source.sql(rows.format("source"))
