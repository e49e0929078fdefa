"""Flight SQL's commands as bytes, for what no driver asks."""

from __future__ import annotations

from pyarrow import flight

from harness.flight import Service

COMMANDS = "type.googleapis.com/arrow.flight.protocol.sql."


def any_of(name: str, value: bytes) -> bytes:
    """A message inside protobuf's Any; both are shorter than 128 bytes."""
    url = (COMMANDS + name).encode()
    return b"\x0a" + bytes([len(url)]) + url + b"\x12" + bytes([len(value)]) + value


def text(field: int, value: str) -> bytes:
    return bytes([field << 3 | 2, len(value)]) + value.encode()


def asked(service: Service, command: bytes) -> list[dict]:
    """The rows of an answer, its schema being the one that was announced."""
    with flight.connect(service.uri.replace("grpc://", "grpc+tcp://")) as client:
        token = client.authenticate_basic_token(service.user, service.password)
        options = flight.FlightCallOptions(headers=[token], timeout=60)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
        [endpoint] = info.endpoints
        table = client.do_get(endpoint.ticket, options).read_all()
        assert table.schema == info.schema
        return table.to_pylist()
