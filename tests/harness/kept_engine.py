"""An engine that is started again when it falls, as whoever runs a server has it."""

from __future__ import annotations

import threading

from harness.endpoint import Endpoint
from harness.engine import Engine, Fallen

LOOKED_AFTER_SECONDS = 0.1


class KeptEngine:
    """`falls` counts its ends that nobody asked for."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.falls, self._ending, self._lock = 0, threading.Event(), threading.Lock()
        self._trouble: Exception | None = None
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    @property
    def direct(self) -> Endpoint:
        return self.engine.direct

    def kill(self) -> None:
        """By SIGKILL; it is back when this returns."""
        self.is_kept()
        with self._lock:
            self._start_again()

    def is_kept(self) -> None:
        """Fails if it could not be started again."""
        if self._trouble:
            raise AssertionError(f"the engine fell and is gone: {self._trouble}") from self._trouble

    def stop(self) -> None:
        self._ending.set()
        self._keeper.join()
        self.engine.stop()
        self.is_kept()

    def _start_again(self) -> None:
        """Whoever breaks connections to it does so before it has answered as well."""
        while True:
            self.engine.kill()
            self.engine.mend()
            try:
                return self.engine.start()
            except Fallen:
                self.falls += 1

    def _keep(self) -> None:
        try:
            while not self._ending.wait(LOOKED_AFTER_SECONDS):
                with self._lock:
                    if self.engine.fell():
                        self.falls += 1
                        self._start_again()
        except Exception as trouble:
            self._trouble = trouble
