"""A name server on loopback, over UDP, that knows SRV records."""

from __future__ import annotations

from dnslib import QTYPE, RCODE, RR, SRV, DNSRecord
from dnslib.server import BaseResolver, DNSHandler, DNSLogger, DNSServer

RECORD = "_clickhouse._tcp.example.test"
#: Short, so that it is the client's own bound that counts.
TIME_TO_LIVE_SECONDS = 1


class NameServer(BaseResolver):
    """`targets` is what the record says: (priority, weight, port, host). `None`: there is no such name."""

    def __init__(self) -> None:
        self.targets: list[tuple[int, int, int, str]] | None = None
        self.asked = 0
        self.server = DNSServer(self, address="127.0.0.1", port=0, logger=DNSLogger(log="-request,-reply"))
        self.server.start_thread()

    @property
    def address(self) -> str:
        host, port = self.server.server.server_address
        return f"{host}:{port}"

    def resolve(self, request: DNSRecord, handler: DNSHandler) -> DNSRecord:
        reply = request.reply()
        is_known = str(request.q.qname).rstrip(".") == RECORD and request.q.qtype == QTYPE.SRV
        if self.targets is None or not is_known:
            reply.header.rcode = RCODE.NXDOMAIN
        else:
            for priority, weight, port, host in self.targets:
                data = SRV(priority, weight, port, host)
                reply.add_answer(RR(request.q.qname, QTYPE.SRV, rdata=data, ttl=TIME_TO_LIVE_SECONDS))
        self.asked += 1
        return reply

    def __enter__(self) -> NameServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        self.server.server.server_close()
