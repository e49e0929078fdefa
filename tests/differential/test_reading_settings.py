"""The table of settings in the code is ClickHouse's own: none is missing, and the defaults agree.

What parsing doesn't implement is decided by that table alone, so a setting that it lacks would be a setting that
nobody thought about.
"""

from __future__ import annotations

import json
import subprocess

from harness.endpoint import Endpoint
from harness.paths import example_binary

PREFIXES = ("input_format_", "format_", "date_time_", "cast_")
# Known here because later versions have them.
LATER = {"input_format_read_datetime_number_as_raw_value"}
# `auto(2)`: the number is that of the machine's cores.
OF_THE_MACHINE = {"max_parsing_threads"}


def in_the_code() -> dict[str, str]:
    lines = subprocess.run([example_binary("reading_settings")], capture_output=True, check=True).stdout.decode()
    pairs = (line.split("\t") for line in lines.splitlines())
    return {name: bytes.fromhex(default).decode() for name, default in pairs}


def in_clickhouse(direct: Endpoint) -> dict[str, str]:
    reply = direct.request("SELECT name, default FROM system.settings FORMAT JSONCompactEachRow")
    assert reply.status == 200, reply.text
    return dict(json.loads(line) for line in reply.body.decode().splitlines())


def test_every_reading_setting_is_in_the_table(direct: Endpoint) -> None:
    bearing = {name for name in in_clickhouse(direct) if name.startswith(PREFIXES)}
    assert bearing - in_the_code().keys() == set()
    known = in_clickhouse(direct).keys() | LATER
    assert in_the_code().keys() - known == set(), "the table has settings that ClickHouse does not"


def test_defaults_are_those_of_clickhouse(direct: Endpoint) -> None:
    real = in_clickhouse(direct)
    known = {name: default for name, default in in_the_code().items() if name in real and name not in OF_THE_MACHINE}
    assert len(known) > 150
    assert known == {name: real[name] for name in known}

