"""Where contests between a gateway and its engine are held: tables of values, and a contest that uses them."""

from __future__ import annotations

from differential.contest import Contest
from differential.rendering import Renderer
from harness.gateway import Gateway
from harness.users import TESTER

DATABASE = "formats"


class Field:
    def __init__(self, gateway: Gateway):
        gateway.direct.sql(f"CREATE DATABASE {DATABASE}")
        direct = gateway.direct.using(DATABASE)
        tested = gateway.http.as_user(TESTER.name, TESTER.password).using(DATABASE)
        self.renderer, self.contest = Renderer(direct), Contest(gateway, tested, direct)
