"""Connections that do nothing: what each costs the gateway in memory."""

import http.client
from argparse import Namespace

from bench.base.document import prose
from bench.base.figures import Goals, figure, table
from bench.base.part import Option, part
from bench.base.processes import raise_open_files, usage
from bench.base.stack import Stack


@part("idle", "Idle connections", quick={"connections": 1000}, connections=Option(5000))
def idle(stack: Stack, options: Namespace) -> str:
    """Memory of idle connections."""
    if (limit := raise_open_files()) < options.connections + 100:
        raise SystemExit(f"only {limit} files may be open: raise `ulimit -n` or use fewer connections")
    memory = lambda: usage(stack.gateway_pid).resident_bytes / 1e6
    before, opened = memory(), []
    for _ in range(options.connections):
        # Each asks for something once, so that the gateway has made whatever it keeps for one.
        connection = http.client.HTTPConnection(stack.gateway.host, stack.gateway.port, timeout=60)
        connection.request("POST", "/?query=SELECT%201")
        answer = connection.getresponse()
        if (answer.status, answer.read()) != (200, b"1\n"):
            raise SystemExit(f"an idle connection's query was answered {answer.status}")
        opened.append(connection)
    after = memory()
    for connection in opened:
        connection.close()
    per_connection = max(0.0, after - before) * 1000 / options.connections
    line = [f"{options.connections:,}", *map(figure, (before, after, per_connection))]
    shown = table(["idle connections", "before, MB", "with them, MB", "per connection, kB"], [line])
    goals = Goals()
    goals.at_most("the gateway with 5,000 idle connections, MB", 150, after)
    return f"{prose('idle')}{shown}\n{goals}"
