"""Clusters of one shard, as a ClickHouse's configuration has them."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from harness.users import TESTER, User

WRONG = User(TESTER.name, "wrong", ())


CHUNKED = "<proto_caps><send>chunked</send><recv>chunked</recv></proto_caps>"


def cluster_xml(name: str, port: int, user: User | None = TESTER, secret: str = "", more: str = "") -> str:
    login = f"<user>{user.name}</user><password>{escape(user.password)}</password>" if user else ""
    replica = f"<replica><host>127.0.0.1</host><port>{port}</port>{login}{more}</replica>"
    return f"<{name}>{f'<secret>{secret}</secret>' if secret else ''}<shard>{replica}</shard></{name}>"


def remote_servers(clusters: Iterable[str]) -> str:
    return f"<remote_servers>{''.join(clusters)}</remote_servers>"
