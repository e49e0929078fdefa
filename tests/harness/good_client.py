"""A client that inserts while others attack: it hears 200 each time, and its times can be printed."""

from __future__ import annotations

import statistics
import threading
import time

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.load import Writers
from harness.quick_http import QuickConnection

PAUSE_SECONDS = 0.005


class GoodClient(Writers):
    """Inserts into the table `good`, one row after the other."""

    def __init__(self, endpoint: Endpoint):
        super().__init__()
        self.endpoint, self.statuses, self.seconds = endpoint, [], []
        self.threads = [threading.Thread(target=self.write, daemon=True)]

    def write(self) -> None:
        connection = QuickConnection(self.endpoint)
        target = self.endpoint.target("INSERT INTO good FORMAT JSONEachRow", {"async_insert": 1})
        while not self.stopping.wait(PAUSE_SECONDS):
            began_at = time.monotonic()
            self.statuses.append(connection.post(target, b'{"a":1}').status)
            self.seconds.append(time.monotonic() - began_at)
        connection.close()

    def goes_on(self) -> None:
        goal = len(self.statuses) + 2
        eventually(lambda: len(self.statuses) >= goal, "the good client's inserts go on")
        assert set(self.statuses) == {200}

    def times(self) -> str:
        seconds = sorted(self.seconds)
        return f"{len(seconds)} inserts of the good client, p50 {statistics.median(seconds):.3f} s, p99 {seconds[len(seconds) * 99 // 100]:.3f} s"
