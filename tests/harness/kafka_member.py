"""A member of a consumer group as a process of its own: our consumer, by its example program `consume`."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.eventually import eventually
from harness.paths import example_binary
from harness.process import Child

# A member that is alive stays one, also where the machine stands still for a while. What is to be seen soon is short.
TIMES = {"session_ms": 20_000, "heartbeat_ms": 300, "rebalance_ms": 10_000, "refresh_ms": 500}
STOP_SECONDS = 30

Place = tuple[str, int]


@dataclass(frozen=True)
class Line:
    """Something that happened to a partition; `epoch` tells its ownerships apart."""

    what: str
    place: Place
    epoch: int
    rest: tuple[str, ...]


@dataclass
class Claim:
    """One ownership of a partition: where it began to read, what it read, and up to where it committed."""

    start: int
    committed: int
    records: dict[int, str]


class Member:
    def __init__(self, folder: Path, address: str, group: str, topics: str, **names: object):
        given = [f"{name}={value}" for name, value in {**TIMES, **names}.items()]
        command = [str(example_binary("consume")), address, group, topics, *given]
        number = len(list(folder.glob("member-*.log")))
        self.child = Child(command, folder / f"member-{number}.log", stdin=subprocess.PIPE)

    def lines(self) -> list[Line]:
        whole = self.child.log().rsplit("\n", 1)[0].split("\n")
        split = (line.split("\t") for line in whole)
        return [Line(word[0], (word[1], int(word[2])), int(word[3]), tuple(word[4:])) for word in split if len(word) > 3]

    def all(self, what: str, place: Place | None = None) -> list[Line]:
        return [line for line in self.lines() if line.what == what and place in (None, line.place)]

    def owned(self) -> set[Place]:
        """What it may still read."""
        owned: set[Place] = set()
        for line in self.lines():
            if line.what == "started":
                owned.add(line.place)
            elif line.what in ("given-up", "lost"):
                owned.discard(line.place)
        return owned

    def values(self) -> list[str]:
        return [line.rest[2] for line in self.all("record")]

    def claims(self) -> dict[tuple[Place, int], Claim]:
        claims: dict[tuple[Place, int], Claim] = {}
        for line in self.lines():
            key = (line.place, line.epoch)
            if line.what == "started":
                claims[key] = Claim(int(line.rest[0]), int(line.rest[0]), {})
            elif line.what == "record":
                claims[key].records[int(line.rest[0])] = line.rest[2]
            elif line.what == "committed":
                claims[key].committed = int(line.rest[0])
        return claims

    def order(self, text: str) -> None:
        assert self.child.process.stdin
        self.child.process.stdin.write(f"{text}\n".encode())
        self.child.process.stdin.flush()

    def await_line(self, what: str, place: Place | None = None, seconds: float = 30) -> Line:
        return eventually(lambda: self.all(what, place), f"{what} of {place}\n{self.child.log()[-2000:]}", seconds)[-1]

    def leave(self) -> None:
        self.order("leave")
        assert self.child.wait(STOP_SECONDS) == 0, self.child.log()[-2000:]

    def kill(self) -> None:
        self.child.signal(signal.SIGKILL)
        self.child.wait()

    def freeze(self) -> None:
        self.child.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.child.signal(signal.SIGCONT)


def await_shares(members: list[Member], partitions: int, seconds: float = 60) -> list[int]:
    """Until every partition has an owner, and nobody has two more than anybody else."""

    def shared_out() -> list[int] | None:
        owned = [member.owned() for member in members]
        shares = sorted(map(len, owned))
        is_whole = len(set().union(*owned)) == sum(shares) == partitions
        return shares if is_whole and shares[-1] - shares[0] <= 1 else None

    return eventually(shared_out, f"{partitions} partitions of {len(members)} members", seconds) or []


def delivered(members: Iterable[Member]) -> Counter[str]:
    """What was read by those whose offsets count: where a claim ends, the next one has to begin at what it committed, or behind,
    where it was killed before it could say so."""
    by_place: dict[Place, list[Claim]] = {}
    for member in members:
        for (place, _), claim in member.claims().items():
            by_place.setdefault(place, []).append(claim)
    values: Counter[str] = Counter()
    for place, claims in by_place.items():
        claims.sort(key=lambda claim: (claim.start, claim.committed))
        for claim, following in zip(claims, [*claims[1:], None]):
            assert following is None or claim.committed <= following.start, f"a commit of {place} was undone"
            values.update(value for offset, value in claim.records.items() if following is None or offset < following.start)
    return values
