"""Writers that each insert one row after another, and know what became of each."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from harness.endpoint import Endpoint
from harness.inserts import INTO_T, rows

WRITERS = 16


@dataclass
class Written:
    """What the writers know about their rows."""

    acknowledged: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    uncertain: list[int] = field(default_factory=list)

    def tried(self) -> set[int]:
        return {*self.acknowledged, *self.refused, *self.uncertain}


class Writers:
    """Threads that go on from the beginning of `with` to its end, or until `stopping` is set. When the test has failed within,
    nobody is to wait for an answer any more: `hopeless` is set."""

    def __init__(self) -> None:
        self.stopping, self.hopeless = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is not None:
            self.hopeless.set()
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class Load(Writers):
    """Inserts into `t` until told to stop, rows numbered from `first` on. `settings` say what an acknowledgement is to mean."""

    def __init__(self, endpoint: Endpoint, first: int = 0, **settings: object):
        super().__init__()
        self.endpoint, self.first, self.settings = endpoint, first, settings
        self.written = Written()
        self.threads = [threading.Thread(target=self.write, args=(writer,)) for writer in range(WRITERS)]

    def write(self, writer: int) -> None:
        number = self.first + writer
        while not self.stopping.is_set():
            try:
                status = self.endpoint.insert(INTO_T, rows(number), **self.settings).status
                (self.written.acknowledged if status == 200 else self.written.refused).append(number)
            except (OSError, http.client.HTTPException):
                self.written.uncertain.append(number)
            number += WRITERS

    def acknowledged_more(self, by: int) -> Callable[[], bool]:
        goal = len(self.written.acknowledged) + by
        return lambda: len(self.written.acknowledged) >= goal
