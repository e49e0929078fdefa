"""What the benchmarks believe: rows compared with what was acknowledged, processes, rates made of commits, the command line."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time

import pytest
from harness.paths import ROOT

from bench.__main__ import parser
from bench.base.check import Found, Ids, Stored, compare, found_of
from bench.base.document import REGIONS
from bench.base.part import PARTS
from bench.base.processes import TICKS_PER_SECOND, descendants, parse_stat, usage
from bench.base.scenario import Scenario
from bench.base.stack import endpoint_of_url, url_of_endpoint
from bench.clients.relay import listen
from bench.kafka.peak import TOGETHER_SECONDS, messages_per_second
from bench.parts.tables import Reading, between, merged


def test_everything_there_is_exact():
    stored = compare([Ids(3), Ids(0)], [Found(0, 3, 3, 2, 0)], [0, 0])
    assert stored == Stored(rows=3) and stored.is_exact


def test_a_lost_row_is_not_hidden_by_an_unacknowledged_one_that_landed():
    # 0 to 9 were sent, 4 and 5 refused. Eight rows are there, but one of them is 4: an acknowledged one is missing.
    stored = compare([Ids(10, (4, 5))], [Found(0, 8, 8, 9, 0)], [1])
    assert (stored.lost, stored.unacknowledged_but_there, stored.is_exact) == (1, 1, False)


def test_a_lost_row_is_not_hidden_by_a_doubled_one():
    stored = compare([Ids(10)], [Found(0, 10, 9, 9, 0)], [0])
    assert (stored.lost, stored.doubled) == (1, 1)


def test_a_connection_without_any_row_lost_them_all():
    assert compare([Ids(5, (2,))], [], [0]).lost == 4


def test_rows_that_nobody_sent_are_foreign():
    assert compare([Ids(2)], [Found(0, 2, 2, 7, 0), Found(9, 1, 1, 0, 0)], [0]).foreign == 3
    assert compare([Ids(2)], [Found(0, 2, 2, 1, mangled=1)], [0]).foreign == 1


@pytest.mark.parametrize("line", ["1\t2\t3", "1\tx\t3\t4\t5", ""])
def test_an_answer_of_another_shape_is_refused(line: str):
    assert found_of("1\t2\t3\t4\t5") == Found(1, 2, 3, 4, 5)
    with pytest.raises((TypeError, ValueError)):
        found_of(line)


LINE = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 100 1000000 512 18446744073"


def test_a_process_whose_name_holds_parentheses_is_read_and_a_line_that_breaks_off_is_not():
    assert parse_stat(LINE).cpu_seconds == 300 / TICKS_PER_SECOND
    for end in range(LINE.index("512")):
        with pytest.raises(ValueError):
            parse_stat(LINE[:end])


def test_finds_itself_and_its_children():
    assert usage(os.getpid()).resident_bytes > 100_000 and usage(None) == usage(-1)
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert child.pid in descendants(os.getpid())
    child.communicate(b"")


def test_urls_with_and_without_login():
    full = endpoint_of_url("http://windrow:p%3Aw@127.0.0.1:8123/")
    assert (full.host, full.port, full.user, full.password) == ("127.0.0.1", 8123, "windrow", "p:w")
    assert endpoint_of_url(url_of_endpoint(full)) == full
    assert endpoint_of_url("http://127.0.0.1:9").user == "default"
    for wrong in ("127.0.0.1:1", "http://host", "http://host:port", "https://a:1"):
        with pytest.raises((SystemExit, ValueError)):
            endpoint_of_url(wrong)


def test_a_statement_is_encoded():
    assert Scenario("stored", 1, 1).query("a.b é").startswith("query=INSERT%20INTO%20a.b%20%C3%A9%20FORMAT%20JSONEachRow&async")


def test_merged_reads_all_tables_that_there_are():
    assert [merged(1), merged(10)] == ["merge('bench', '^t[0-9]{1,1}$')"] * 2
    assert [merged(11), merged(10_000)] == ["merge('bench', '^t[0-9]{1,2}$')", "merge('bench', '^t[0-9]{1,4}$')"]


def test_inserts_that_made_parts_and_the_reading_itself_are_no_questions():
    found = between(Reading(0.0, 10, 100, 50), Reading(2.0, 30, 113, 76), 3)
    assert found == {"parts_per_second": 10, "selects": 5, "empty": 3, "questions": 8}
    assert between(Reading(0.0, 10, 100, 50), Reading(2.0, 30, 113, 60), 3)["empty"] == 0


def test_the_rate_leaves_out_the_beginning_and_the_end():
    commits = [(5.0, 100), (6.0, 300), (7.0, 500), (8.0, 900), (20.0, 1000)]
    assert messages_per_second(commits, 0, 1000) == 800 / 3
    # Those at 5 to 8 belong together, and there is but one more, which doesn't count.
    for few, together in ((commits, 1), (commits[3:], 0), ([], 0)):
        with pytest.raises(SystemExit):
            messages_per_second(few, together, 1000)


def test_commits_that_belong_together_are_one():
    commits = [(0.0, 100), (0.01, 200), (2.01, 300), (2.02, 400), (4.01, 600)]
    assert messages_per_second(commits, TOGETHER_SECONDS, 10_000) == pytest.approx(100)


def test_the_command_line_is_sound_and_all_of_it_can_be_shortened():
    assert set(PARTS) == set(REGIONS)
    for name, part in PARTS.items():
        given = vars(parser().parse_args([name]))
        assert given.items() >= part.defaults(False).items()
        assert part.defaults(True).keys() == part.options.keys()
    chosen = parser().parse_args(["kafka", "--seconds", "5", "--rounds", "3", "--engines", "null,merge-tree"])
    assert PARTS["kafka"].command(chosen) == "bench/run kafka --seconds 5 --rows 20000000 --rounds 3 --engines null,merge-tree"


def test_the_commands_that_stand_in_the_page_are_understood():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    commands = re.findall(r"^`bench/run ([^`]*)`", page, re.MULTILINE)
    assert len(commands) >= 15
    for command in commands:
        chosen = parser().parse_args(command.split())
        assert PARTS[chosen.part].command(chosen).split() == ["bench/run", *command.split()]


def test_bytes_come_through_a_relay_in_order_no_earlier_than_their_round_trip_and_the_end_is_passed_on():
    server = socket.create_server(("127.0.0.1", 0))

    def echo() -> None:
        connection = server.accept()[0]
        while piece := connection.recv(1 << 16):
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)

    def send() -> None:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)

    threading.Thread(target=echo, daemon=True).start()
    sent, begun = bytes(number % 251 for number in range(3_000_000)), time.monotonic()
    client = socket.create_connection(listen(server.getsockname(), 0.03))
    threading.Thread(target=send, daemon=True).start()
    first = client.recv(1)
    assert time.monotonic() - begun >= 0.06, "a handshake and a round trip"
    with client.makefile("rb") as rest:
        assert first + rest.read() == sent
