"""What clients ask about the service and its tables."""

from __future__ import annotations

import pyarrow
import pytest
from adbc_driver_manager import Error

from harness.flight import Service


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


def test_keys_are_none(service: Service) -> None:
    """Clients that look for keys get an answer without rows."""
    with service.connect() as connection:
        constraints = connection.adbc_get_objects(depth="tables", db_schema_filter=service.database).read_all()
        assert constraints.num_rows == 1
