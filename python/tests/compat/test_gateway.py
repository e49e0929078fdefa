"""With Windrow in between, programs see what they see of ClickHouse itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compat.describe import differences
from compat.program import PROGRAMS, Program
from compat.test_programs import outcome

from harness.engine import Engine

NAMES = {
    "rows_and_columns_of_one_result", "frame_forms", "numpy_forms", "arrow_of_type[mixed]", "column_blocks", "raw_bytes", "an_error_in_mid_stream",
    "many_rows", "a_context", "odd_names", "computed_columns", "raw_blocks", "a_compressed_raw_block", "a_constraint", "an_arrow_table", "a_frame",
    "there_and_back", "external_data", "a_session", "settings_of_a_query", "commands", "compressions[lz4]",
    "errors_of_other_methods[no_table]", "db_api_inserts",
}  # fmt: skip
CHOSEN = [program for program in PROGRAMS if program.name in NAMES]


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.name)
async def test_windrow_in_between_makes_no_difference(
    program: Program, where: dict[str, Any], gateway_where: dict[str, Any], engine: Engine, tmp_path: Path
) -> None:
    straight = await outcome("windrow", program, where, tmp_path / "straight")
    engine.direct.sql(f"DROP DATABASE {where['database']}")
    engine.direct.sql(f"CREATE DATABASE {where['database']}")
    through = await outcome("windrow", program, gateway_where, tmp_path / "through")
    address = f"127.0.0.1:{gateway_where['port']}", f"127.0.0.1:{where['port']}"
    found = differences(without_bytes(replaced(straight, *address[::-1])), without_bytes(replaced(through, *address)))
    assert not found, "\n" + "\n".join(found)


def replaced(value: Any, old: str, new: str) -> Any:
    """Messages name the address that was asked: the same one on both sides."""
    if isinstance(value, str):
        return value.replace(old, "address").replace(new, "address")
    if isinstance(value, list | tuple):
        return type(value)(replaced(item, old, new) for item in value)
    return value


def without_bytes(value: Any) -> Any:
    """A gathered insert's summary counts the bytes of the block: a known difference (docs/compatibility.md)."""
    if isinstance(value, tuple) and len(value) == 5 and value[0] == "QuerySummary":
        name, rows, _, (kind, items), has_id = value
        return (name, rows, None, (kind, [item for item in items if not item[0][1].endswith("_bytes'")]), has_id)
    if isinstance(value, list | tuple):
        return type(value)(without_bytes(item) for item in value)
    return value
