"""The users that every server under test knows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class User:
    name: str
    password: str
    grants: tuple[str, ...]
    # What the engine's settings say besides, as XML: of a quota's one interval, of rows in databases.
    quota: str = ""
    rows: str = ""
    # Of a profile of its own.
    profile: str = ""


# May do everything, by name and password: the same credentials serve at the gateway and at the engine behind it.
TESTER = User("tester", "te&st er", ("GRANT ALL ON *.*",))
# May insert one column of one table and read it.
JOE = User("joe", "j", ("GRANT SELECT, INSERT(a) ON narrow.t",))
# May insert anywhere, may not see other users' things.
ANN = User("ann", "a", ("GRANT SELECT, INSERT ON *.*", "GRANT SYSTEM FLUSH ASYNC INSERT QUEUE ON *.*"))
ALL = (TESTER, JOE, ANN)
