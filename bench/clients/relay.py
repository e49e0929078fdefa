"""A longer way to a server: passes TCP connections on and adds a round trip, half of it each way, and nothing else.

Bandwidth is not limited: whatever comes is read at once, waits for its time in a queue and is written then, so that as much as fits is
under way, as on a real line. What a real line does besides, slow start above all, is not there; a new connection costs its round trip,
since its first bytes are held back for as long as the handshake would have taken. Each direction has two threads that block: timers of
an event loop are off by up to a millisecond, which is a third of the shortest way that is measured.

`python -m bench.clients.relay ADDRESS ROUND_TRIP_MS` prints where it listens, and runs until it is killed.
"""

import json
import socket
import sys
import threading
import time
from queue import Queue

# Read at once from a socket, and pieces under way in one direction; far more than a line of 20 ms holds.
PIECE_BYTES, MAX_UNDER_WAY = 256 << 10, 2048


def listen(server: tuple[str, int], round_trip_seconds: float) -> tuple[str, int]:
    """Returns at once; threads do the rest."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            client = listener.accept()[0]
            threading.Thread(target=connect, args=(client, server, round_trip_seconds), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()


def connect(client: socket.socket, server: tuple[str, int], round_trip_seconds: float) -> None:
    established = time.monotonic() + round_trip_seconds
    try:
        behind = socket.create_connection(server)
    except OSError:
        # A server that is away shows as a connection that is closed.
        return client.close()
    for one in (client, behind):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for source, sink in ((client, behind), (behind, client)):
        queue: Queue[tuple[float, bytes]] = Queue(MAX_UNDER_WAY)
        taking = (source, queue, established, round_trip_seconds / 2)
        threading.Thread(target=take_in, args=taking, daemon=True).start()
        threading.Thread(target=hand_out, args=(sink, queue), daemon=True).start()


def take_in(source: socket.socket, queue: Queue[tuple[float, bytes]], established: float, one_way: float) -> None:
    """Ends when the sender closes; the end is passed on as a piece without bytes."""
    piece = b"all"
    while piece:
        try:
            piece = source.recv(PIECE_BYTES)
        except OSError:
            piece = b""
        queue.put((max(time.monotonic(), established) + one_way, piece))


def hand_out(sink: socket.socket, queue: Queue[tuple[float, bytes]]) -> None:
    """Writes each piece when its time has come."""
    try:
        while True:
            due, piece = queue.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not piece:
                return sink.shutdown(socket.SHUT_WR)
            sink.sendall(piece)
    except OSError:
        # Who still sends learns that nobody reads.
        sink.close()


if __name__ == "__main__":
    host, _, port = sys.argv[1].rpartition(":")
    own = listen((host, int(port)), float(sys.argv[2]) / 1000)
    print(json.dumps(f"{own[0]}:{own[1]}"), flush=True)
    threading.Event().wait()
