"""Bytes that no client of Flight SQL sends: refused, and the service goes on."""

from __future__ import annotations

import random
import socket

import pyarrow
import pytest
from pyarrow import flight

from harness.flight import Service
from harness.flight_commands import any_of, text

SEEDS = [
    any_of("CommandStatementQuery", text(1, "SELECT 1 AS a")),
    any_of("TicketStatementQuery", text(1, "SELECT 1 AS a")),
    any_of("CommandGetTables", text(2, "%") + b"\x28\x01"),
    any_of("CommandGetSqlInfo", b"\x08\x00\x08\x01"),
    any_of("CommandGetPrimaryKeys", text(3, "t")),
    any_of("CommandGetXdbcTypeInfo", b"\x08\x04"),
    any_of("CommandPreparedStatementQuery", text(1, "no such handle")),
    any_of("CommandStatementIngest", text(2, "t")),
    any_of("ActionCreatePreparedStatementRequest", text(1, "SELECT ?")),
]


def mutations(seed: int, count: int) -> list[bytes]:
    rng, made = random.Random(seed), []
    for _ in range(count):
        message = bytearray(rng.choice(SEEDS))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(message))
            match rng.randrange(3):
                case 0:
                    message[at] = rng.randrange(256)
                case 1:
                    del message[at:]
                case _:
                    message[at:at] = rng.randbytes(rng.randrange(1, 5))
            if not message:
                break
        made.append(bytes(message))
    return made


@pytest.fixture
def client(service: Service):
    connected = flight.connect(service.uri.replace("grpc://", "grpc+tcp://"))
    token = connected.authenticate_basic_token(service.user, service.password)
    yield connected, flight.FlightCallOptions(headers=[token], timeout=60)
    connected.close()


def test_changed_commands(service: Service, client) -> None:
    connected, options = client
    refused = 0
    for message in mutations(5, 150):
        for ask in (
            lambda: connected.get_flight_info(flight.FlightDescriptor.for_command(message), options),
            lambda: connected.do_get(flight.Ticket(message), options).read_all(),
            lambda: list(connected.do_action(flight.Action("CreatePreparedStatement", message), options)),
        ):
            try:
                ask()
            except (pyarrow.ArrowException, flight.FlightError, KeyError, OSError):
                refused += 1
    assert refused > 200
    assert connected.do_get(flight.Ticket(SEEDS[1]), options).read_all().to_pydict() == {"a": [1]}


def test_rows_with_changed_bytes(service: Service, client) -> None:
    connected, options = client
    for message in mutations(6, 100):
        descriptor = flight.FlightDescriptor.for_command(message)
        with pytest.raises((pyarrow.ArrowException, flight.FlightError, KeyError, OSError)):
            writer, answers = connected.do_put(descriptor, pyarrow.schema({"a": pyarrow.int64()}), options)
            writer.write_batch(pyarrow.record_batch({"a": [1]}))
            writer.done_writing()
            while answers.read() is not None:
                pass
            writer.close()
            raise KeyError("an ingest into a table that isn't there, or nothing at all")
    assert connected.do_get(flight.Ticket(SEEDS[1]), options).read_all().to_pydict() == {"a": [1]}


def test_bytes_that_are_no_grpc(service: Service) -> None:
    host, port = service.uri.removeprefix("grpc://").split(":")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    rng = random.Random(7)
    frames = [preface + rng.randbytes(200) for _ in range(20)]
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", preface, *frames):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            try:
                while connection.recv(65536):
                    pass
            except ConnectionError:
                pass
    with service.cursor() as cursor:
        cursor.execute("SELECT 1 AS a")
        assert cursor.fetchall() == [(1,)]
