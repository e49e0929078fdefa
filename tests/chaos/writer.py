"""A writer: one insert after the other, each tried once or until it is acknowledged, and what came of each."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from chaos.kinds import NATIVE, Kind, block, payload, query_id, rows_of
from harness.endpoint import Endpoint
from harness.native import EXCEPTION, Native
from harness.quick_http import QuickConnection

PATIENCE_SECONDS = 60
# Between two attempts of a writer that was just refused; it ends at once when the load does.
PAUSE_SECONDS = 0.02
# One insert in so many is sent again although it was acknowledged.
REPEATED_ONE_IN = 10
# What answers say that promise that nothing of the insert is stored.
NOTHING_STORED = (b"\r\nretry-after:", b"nothing of it is or will be stored", b"was not taken", b"nothing was stored")


@dataclass
class Promises:
    """Numbers of inserts by what their writer knows of them."""

    acknowledged: list[int] = field(default_factory=list)
    # Refused in words that promise that nothing is stored.
    refused: list[int] = field(default_factory=list)
    # The connection broke, or the answer left it open: stored once, or not at all.
    open: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    repeats: int = 0

    def sent(self) -> set[int]:
        return {*self.acknowledged, *self.refused, *self.open}


class Writer(threading.Thread):
    """`where` is the data port as it is now, or nothing while the gateway is down and known to be."""

    def __init__(self, number: int, kind: Kind, where: Callable[[], Endpoint | None], run: str, seed: int):
        super().__init__(daemon=True)
        self.writer, self.kind, self.where, self.run_name = number, kind, where, run
        self.rng = random.Random(f"{seed}-{number}")
        self.promises = Promises()
        self.stopping = threading.Event()
        self.connection: QuickConnection | None = None
        self.native: Native | None = None
        self.next_number = 0

    def numbers(self) -> range:
        """Of the inserts that it may have sent."""
        return range(self.next_number + 1)

    def run(self) -> None:
        while not self.stopping.is_set():
            self.insert(self.next_number)
            self.next_number += 1
        self.disconnect()

    def insert(self, number: int) -> None:
        outcome = self.attempt(number)
        while outcome != "acknowledged" and self.kind.repeats and not self.stopping.is_set():
            outcome = self.again(number, outcome)
        getattr(self.promises, outcome).append(number)
        if outcome == "acknowledged" and self.kind.repeats and self.rng.randrange(REPEATED_ONE_IN) == 0:
            self.promises.repeats += 1
            self.attempt(number)

    def again(self, number: int, before: str) -> str:
        """A refused repeat says nothing of the attempts before it."""
        self.promises.repeats += 1
        outcome = self.attempt(number)
        return before if outcome == "refused" else outcome

    def attempt(self, number: int) -> str:
        connection = self.connected()
        if connection is None:
            return "refused"
        kind = self.rng.choice(self.kind.formats)
        settings = dict(self.kind.settings)
        if self.kind.token:
            settings["insert_deduplication_token"] = query_id(self.run_name, self.writer, number)
        if self.kind.is_poison(number):
            settings["query_id"] = query_id(self.run_name, self.writer, number)
        table = self.kind.table.name_for(self.writer, number)
        if kind == NATIVE:
            return self.natively(connection.endpoint, f"INSERT INTO {table} VALUES", settings, number)
        target = connection.endpoint.target(f"INSERT INTO {table} FORMAT {kind}", settings)
        try:
            reply = connection.post(target, payload(kind, self.writer, number))
        except ConnectionRefusedError:
            return self.failed("refused")
        except (OSError, ValueError) as error:
            return self.failed("open", f"{type(error).__name__}: {error}")
        if reply.status == 200:
            return "acknowledged"
        answer = reply.head.lower() + reply.body
        nothing_stored = any(words in answer for words in NOTHING_STORED)
        return self.failed("refused" if nothing_stored else "open", f"HTTP {reply.status}: {reply.text.strip()}")

    def natively(self, endpoint: Endpoint, statement: str, settings: dict[str, object], number: int) -> str:
        """The same insert over the native protocol, on a connection that is kept."""
        query_id = str(settings.pop("query_id", ""))
        said = {name: str(value) for name, value in settings.items()}
        try:
            if self.native is None:
                assert endpoint.native_port is not None, "the gateway speaks it"
                self.native = Native(replace(endpoint, port=endpoint.native_port)).start()
            packets = self.native.insert(statement, block(self.writer, number), rows_of(number), said, query_id=query_id)
        except ConnectionRefusedError:
            return self.failed("refused")
        except (OSError, EOFError) as error:
            return self.failed("open", f"{type(error).__name__}: {error}")
        last = packets[-1]
        if last.kind != EXCEPTION:
            return "acknowledged"
        nothing_stored = any(words in last.message.lower().encode() for words in NOTHING_STORED)
        return self.failed("refused" if nothing_stored else "open", f"native {last.code}: {last.message[:200]}")

    def failed(self, outcome: str, error: str | None = None) -> str:
        if error:
            self.promises.errors.append(error)
        self.disconnect()
        self.stopping.wait(PAUSE_SECONDS)
        return outcome

    def connected(self) -> QuickConnection | None:
        """A kept connection to where the gateway is now."""
        endpoint = self.where()
        if endpoint is None:
            self.disconnect()
            self.stopping.wait(PAUSE_SECONDS)
            return None
        if self.connection is None or self.connection.endpoint != endpoint:
            self.disconnect()
            self.connection = QuickConnection(endpoint, PATIENCE_SECONDS)
        return self.connection

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.native is not None:
            self.native.socket.close()
            self.native = None
