"""Members of consumer groups, ours and others, on a real broker: whatever happens to them, each message counts once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_member import Member, await_shares, delivered
from harness.kafka_topics import QUIET, Message, Topics

Join = Callable[..., Member]
# Of a group that is to see soon that a member is gone.
SOON_MS = 2_000


@pytest.fixture
def join(broker: Broker, topic_name: str, tmp_path: Path) -> Iterator[Join]:
    """Starts members of the test's own group; kills what is left of them."""
    members: list[Member] = []

    def start(topics: str = topic_name, address: str = broker.address, group: str = topic_name, **names: object) -> Member:
        members.append(Member(tmp_path, address, group, topics, **names))
        return members[-1]

    yield start
    for member in members:
        member.kill()


def numbered(count: int, partitions: int, first: int = 0) -> list[Message]:
    return [Message(f"{n}".encode(), partition=n % partitions) for n in range(first, first + count)]


def load_of(topics: Topics, topic: str, partitions: int) -> KafkaLoad:
    return KafkaLoad(topics, topic, partitions, 300, lambda n: f"{n}".encode())


def each_once(count: int) -> Counter[str]:
    return Counter(f"{n}" for n in range(count))


def await_delivered(members: list[Member], count: int) -> None:
    eventually(lambda: sum(delivered(members).values()) >= count, f"{count} messages are read", 60)
    assert delivered(members) == each_once(count)


def test_members_come_and_go_and_keep_what_they_can(broker: Broker, topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 6)
    with load_of(topics, topic_name, 6) as load:
        first = join()
        await_shares([first], 6)
        second = join()
        assert await_shares([first, second], 6) == [3, 3]
        assert len(first.all("revoking")) == 3 and not second.all("revoking")
        third = join()
        assert await_shares([first, second, third], 6) == [2, 2, 2]
        # One from each, and nobody was asked for more than that.
        assert len(first.all("revoking")) + len(second.all("revoking")) == 5
        second.leave()
        assert await_shares([first, third], 6) == [3, 3]
        assert not first.all("lost") and not third.all("lost")
    await_delivered([first, second, third], load.sent)


def test_a_member_is_killed(broker: Broker, topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 4)
    with load_of(topics, topic_name, 4) as load:
        members = [join(session_ms=SOON_MS), join(session_ms=SOON_MS)]
        await_shares(members, 4)
        eventually(lambda: len(members[1].all("committed")) > 20, "it has committed")
        members[1].kill()
        await_shares(members[:1], 4)
        members.append(join(session_ms=SOON_MS))
        await_shares([members[0], members[2]], 4)
    await_delivered(members, load.sent)


def test_a_member_freezes_and_wakes_as_somebody_else(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 2)
    topics.send(topic_name, numbered(10, 2))
    frozen = join(commit="no", session_ms=SOON_MS)
    await_shares([frozen], 2)
    frozen.await_line("record", (topic_name, 1))
    frozen.freeze()
    heir = join()
    await_shares([heir], 2)
    heir.await_line("committed", (topic_name, 0))
    # It is the first thing that it does when it wakes.
    frozen.order(f"commit {topic_name} 0 1 old")
    frozen.order(f"commit {topic_name} 1 1 old")
    frozen.thaw()
    frozen.await_line("lost")
    await_shares([frozen, heir], 2)
    assert not frozen.all("committed")
    assert all(found.metadata != "old" for found in topics.committed(topic_name, topic_name).values())


def test_the_broker_restarts(start_broker: Callable[..., Broker], topic_name: str, join: Join) -> None:
    broker = start_broker()
    topics = Topics(broker)
    topics.create(topic_name, 4)
    with load_of(topics, topic_name, 4) as load:
        members = [join(address=broker.address, session_ms=30_000) for _ in range(2)]
        await_shares(members, 4)
        for harm in (broker.stop, broker.kill):
            before = [len(member.all("committed")) for member in members]
            harm()
            broker.start()
            eventually(lambda: all(len(m.all("committed")) > b + 5 for m, b in zip(members, before)), "they go on")
    await_delivered(members, load.sent)
    assert not any(member.all("lost") for member in members)


def test_what_is_revoked_belongs_to_nobody_else_before_it_is_given_up(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 2)
    first = join(give_up="no", rebalance_ms=60_000)
    await_shares([first], 2)
    second = join(rebalance_ms=60_000)
    place = first.await_line("revoking").place
    # It commits what is under way.
    first.order(f"commit {place[0]} {place[1]} 0 finished")
    first.await_line("committed", place)
    assert not second.all("assigned")
    first.order("release")
    assert second.await_line("assigned", place).rest[:2] == ("0", "finished")
    await_shares([first, second], 2)


def test_what_is_not_given_up_in_time_is_lost(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 2)
    first = join(give_up="no", rebalance_ms=3_000)
    await_shares([first], 2)
    second = join(rebalance_ms=3_000)
    place = first.await_line("revoking").place
    assert first.await_line("lost").place == place
    second.await_line("assigned", place)
    await_shares([first, second], 2)


def test_metadata_comes_back(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 1)
    place, longest = (topic_name, 0), "m" * 4096
    member = join(commit="no")
    await_shares([member], 1)
    assert member.all("assigned")[0].rest[:2] == ("-1", "")
    member.order(f"commit {topic_name} 0 5 {longest}x")
    assert "4097 bytes" in member.await_line("not-committed", place).rest[1]
    member.order(f"commit {topic_name} 0 5 {longest}")
    member.await_line("committed", place)
    member.leave()
    # Not asked of librdkafka, which reads on behind the end of so long a text.
    assert join().await_line("assigned").rest[:2] == ("5", longest)


def test_new_partitions_and_new_topics_of_a_pattern(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(f"{topic_name}.a", 1)
    members = [join(f"^{topic_name}\\.[a-c]"), join(f"^{topic_name}\\.[a-c]")]
    eventually(lambda: sum(len(member.owned()) for member in members) == 1, "one has the only partition")
    topics.grow(f"{topic_name}.a", 3)
    topics.create(f"{topic_name}.b", 3)
    topics.create(f"{topic_name}.d", 3)
    assert await_shares(members, 6) == [3, 3]
    topics.send(f"{topic_name}.b", numbered(9, 3))
    await_delivered(members, 9)
    topics.drop(f"{topic_name}.b")
    await_shares(members, 3)
    # Nobody was asked to finish what can't be committed any more, or could not be told otherwise.
    gone = [line.place[0] for member in members for line in member.all("lost")]
    assert set(gone) <= {f"{topic_name}.b"}


def test_a_topic_that_vanishes_is_lost_and_found(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(f"{topic_name}.a", 1)
    topics.create(f"{topic_name}.b", 1)
    # It gives nothing up: the group could take the partition from it only after a minute.
    member = join(f"{topic_name}.a,{topic_name}.b", give_up="no", rebalance_ms=60_000)
    await_shares([member], 2)
    topics.drop(f"{topic_name}.b")
    assert member.await_line("lost").place == (f"{topic_name}.b", 0)
    topics.create(f"{topic_name}.b", 1)
    topics.send(f"{topic_name}.b", numbered(3, 1))
    await_delivered([member], 3)


def test_a_topic_that_is_not_there_yet(topics: Topics, topic_name: str, join: Join) -> None:
    member = join()
    eventually(lambda: "there is no topic" in member.child.log(), "it says so")
    topics.create(topic_name, 2)
    topics.send(topic_name, numbered(10, 2))
    await_delivered([member], 10)


def test_a_topic_that_is_made_anew(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(5, 1))
    member = join()
    eventually(lambda: len(member.values()) == 5, "they are read")
    old = member.await_line("assigned")
    topics.drop(topic_name)
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(3, 1, first=100))
    eventually(lambda: member.values()[5:] == ["100", "101", "102"], "the new ones are read, from the first on", 60)
    new = member.await_line("assigned")
    assert new.epoch > old.epoch and new.rest[2] != old.rest[2]


def test_offsets_that_are_gone(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(10, 1))
    member = join()
    eventually(lambda: len(member.values()) == 10, "they are read")
    topics.forget_before(topic_name, 0, 4)
    member.order(f"start {topic_name} 0 2")
    assert member.await_line("out-of-range").rest == ("2", "4", "10")
    eventually(lambda: member.values()[10:] == [f"{n}" for n in range(4, 10)], "it goes on with what is there")
    member.order(f"start {topic_name} 0 99")
    eventually(lambda: [line.rest for line in member.all("out-of-range")][1:] == [("99", "4", "10")], "that, too, is said")


def test_where_to_begin(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(f"{n}".encode(), partition=0, timestamp_ms=1_000 + n) for n in range(10)])
    place = (topic_name, 0)
    for start, offset in (("earliest", 0), ("latest", 10), ("1005", 5), ("9999", 10)):
        member = join(start=start, group=f"{topic_name}.{start}", commit="no")
        assert member.await_line("started", place).rest == (f"{offset}",), start
        member.kill()


def test_paused_partitions_wait_and_their_ends_move_on(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 2)
    member = join()
    await_shares([member], 2)
    member.order(f"pause {topic_name} 0")

    def high() -> tuple[str, ...]:
        """Nothing before its broker has said anything of it."""
        member.order(f"watermarks {topic_name} 0")
        return member.await_line("watermarks", (topic_name, 0)).rest[1:2]

    topics.send(topic_name, numbered(2, 2))
    # A request that was under way may have brought it; there is none any more.
    eventually(lambda: high() == ("1",), "its end is known")
    topics.send(topic_name, numbered(8, 2, first=2))
    eventually(lambda: high() == ("5",) and "9" in member.values(), "its end is known, and the other one is read")
    assert not {"2", "4", "6", "8"} & set(member.values())
    member.order(f"resume {topic_name} 0")
    await_delivered([member], 10)


def test_a_new_message_is_here_at_once(topics: Topics, topic_name: str, join: Join) -> None:
    """Also while other partitions of the broker are busy, and after a pause."""
    topics.create(topic_name, 3)
    member = join(commit="no")
    await_shares([member], 3)
    with load_of(topics, topic_name, 1), topics.sending(linger_ms=0) as producer:
        for n in range(30):
            member.order(f"pause {topic_name} 2")
            member.order(f"resume {topic_name} 2")
            producer.produce(topic_name, f"{n}".encode(), partition=1 + n % 2)
            producer.flush()
            quiet = eventually(lambda: [line for line in member.all("record") if line.place[1]][n:], "it is read")
            assert quiet[0].rest[2] == f"{n}"
    ages = sorted(int(line.rest[1]) for line in member.all("record") if line.place[1])
    print(f"ages in ms: {ages}")
    # Half a second is what a fetch may wait.
    assert ages[len(ages) // 2] < 100


def test_a_static_member_comes_back_to_its_partitions(topics: Topics, topic_name: str, join: Join) -> None:
    topics.create(topic_name, 4)
    other = join(session_ms=20_000)
    await_shares([other], 4)
    static = join(instance="i", session_ms=20_000)
    await_shares([other, static], 4)
    before, owned = len(other.lines()), static.owned()
    static.kill()
    back = join(instance="i", session_ms=20_000)
    eventually(lambda: back.owned() == owned, "it has what it had")
    assert len(other.lines()) == before, "the other one has noticed nothing"


class Peer:
    """A consumer of librdkafka, which commits what it reads."""

    def __init__(self, broker: Broker, group: str, topic: str, assignor: str):
        config = {"bootstrap.servers": broker.address, "group.id": group, "auto.offset.reset": "earliest", **QUIET}
        times = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}
        own = {"partition.assignment.strategy": assignor, "enable.auto.commit": False}
        self.consumer = Consumer({**config, **times, **own})
        self.values: list[str] = []
        self.assigned: set[tuple[str, int]] = set()
        self.stopped = threading.Event()
        self.consumer.subscribe([topic])
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        while not self.stopped.is_set():
            message = self.consumer.poll(0.05)
            self.assigned = {(each.topic, each.partition) for each in self.consumer.assignment()}
            if message is not None and message.error() is None:
                self.values.append((message.value() or b"").decode())
                self.consumer.commit(message, asynchronous=False)
        self.consumer.close()

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join(30)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
@pytest.mark.parametrize("who_is_first", ["we", "they"])
def test_librdkafka_in_the_same_group(
    broker: Broker, topics: Topics, topic_name: str, join: Join, assignor: str, who_is_first: str
) -> None:
    topics.create(topic_name, 6)
    if who_is_first == "we":
        member = join()
        await_shares([member], 6)
    peer = Peer(broker, topic_name, topic_name, assignor)
    if who_is_first == "they":
        eventually(lambda: len(peer.assigned) == 6, "it has all of them")
        member = join()

    def shared_out() -> bool:
        ours, theirs = member.owned(), peer.assigned
        return len(ours) == len(theirs) == 3 and not ours & theirs

    eventually(shared_out, "each has half of them", 60)
    topics.send(topic_name, numbered(60, 6))
    eventually(lambda: len(member.values()) + len(peer.values) >= 60, "all are read", 60)
    assert delivered([member]) + Counter(peer.values) == each_once(60)
    peer.stop()
    await_shares([member], 6)
    topics.send(topic_name, numbered(60, 6, first=60))
    eventually(lambda: len(member.values()) + len(peer.values) >= 120, "all are read", 60)
    assert delivered([member]) + Counter(peer.values) == each_once(120)
