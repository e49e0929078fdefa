"""What clients ask about the service and its tables."""

from __future__ import annotations

import pyarrow
import pytest
from adbc_driver_manager import Error

from harness.flight import Service
from harness.flight_commands import any_of, asked, text


def test_what_the_service_is(service: Service) -> None:
    with service.connect() as connection:
        info = connection.adbc_get_info()
        assert info["vendor_name"] == "Windrow"
        assert connection.adbc_get_table_types() == ["SYSTEM TABLE", "TABLE", "VIEW"]


def test_tables_and_columns_are_listed(service: Service) -> None:
    service.create("t", "a Int32, s Nullable(String)")
    service.create("under_score", "a Int32")
    service.create("underXscore", "b Int32")
    service.sql("CREATE VIEW v AS SELECT a FROM t")
    with service.connect() as connection:
        listed = connection.adbc_get_objects(depth="all", db_schema_filter=service.database).read_all().to_pylist()
        [catalog] = listed
        [schema] = catalog["catalog_db_schemas"]
        tables = {table["table_name"]: table for table in schema["db_schema_tables"]}
        assert sorted(tables) == ["t", "underXscore", "under_score", "v"]
        assert [column["column_name"] for column in tables["t"]["table_columns"]] == ["a", "s"]
        assert (tables["t"]["table_type"], tables["v"]["table_type"]) == ("TABLE", "VIEW")
        # A pattern that is a name as well: the table of that name.
        schema = connection.adbc_get_table_schema("under_score", db_schema_filter=service.database)
        assert schema.names == ["a"]
        schema = connection.adbc_get_table_schema("t", db_schema_filter=service.database)
        assert schema.field("a").type == pyarrow.int32()


def test_a_table_that_is_not_there(service: Service) -> None:
    with service.connect() as connection, pytest.raises(Error):
        connection.adbc_get_table_schema("no_such_table", db_schema_filter=service.database)


def test_the_callers_own_table_comes_first(service: Service) -> None:
    """Where other schemas have one of the same name."""
    other = f"a_{service.database}"[:60]
    kind = "SCHEMA" if service.is_duckdb else "DATABASE"
    order = "" if service.is_duckdb else "ENGINE = MergeTree ORDER BY tuple()"
    service.create("t", "mine Int32")
    service.sql(f"CREATE {kind} {other}")
    try:
        service.sql(f"CREATE TABLE {other}.t (theirs Int32) {order}")
        with service.connect() as connection:
            assert connection.adbc_get_table_schema("t").names == ["mine"]
    finally:
        service.sql(f"DROP {kind} {other}" + (" CASCADE" if service.is_duckdb else ""))


def test_primary_keys(service: Service) -> None:
    """ClickHouse's are no keys: many rows may have the same."""
    order = "" if service.is_duckdb else "ENGINE = MergeTree"
    service.sql(f"CREATE TABLE k (a Int32, b Int32, c Int32, PRIMARY KEY (c, a)) {order}")
    service.create("none", "a Int32")
    of_schema = text(2, service.database)
    found = asked(service, any_of("CommandGetPrimaryKeys", of_schema + text(3, "k")))
    keys = [(key["db_schema_name"], key["table_name"], key["column_name"], key["key_sequence"]) for key in found]
    expected = [(service.database, "k", "c", 1), (service.database, "k", "a", 2)]
    assert keys == (expected if service.is_duckdb else [])
    assert asked(service, any_of("CommandGetPrimaryKeys", of_schema + text(3, "none"))) == []
    for name in ("CommandGetExportedKeys", "CommandGetImportedKeys"):
        assert asked(service, any_of(name, of_schema + text(3, "k"))) == []


def test_types_are_those_that_columns_are_made_with(service: Service) -> None:
    listed = asked(service, any_of("CommandGetXdbcTypeInfo", b""))
    names = [entry["type_name"] for entry in listed]
    digits = ["(9, 2)" if entry["create_params"] == ["precision", "scale"] else "" for entry in listed]
    declared = map("".join, zip(names, digits, strict=True))
    service.create("t", ", ".join(f"c{at} {name}" for at, name in enumerate(declared)))
    assert [entry["data_type"] for entry in listed] == sorted(entry["data_type"] for entry in listed)
    [integer] = [entry for entry in listed if entry["type_name"] in ("INTEGER", "Int32")]
    assert (integer["data_type"], integer["column_size"], integer["unsigned_attribute"]) == (4, 10, False)
    of_texts = asked(service, any_of("CommandGetXdbcTypeInfo", b"\x08\x0c"))
    assert [entry["type_name"] for entry in of_texts] == ["VARCHAR" if service.is_duckdb else "String"]
