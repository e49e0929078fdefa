"""A real ZooKeeper of one node: what replicated tables coordinate by. ClickHouse 26.7 takes it for a Keeper.

Its jars are among those of the Kafka 3.9 that `scripts/setup` fetches: that one could still run with it.
"""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from harness.eventually import eventually
from harness.paths import kafka_jars
from harness.ports import free_port
from harness.process import Child

KAFKA_THAT_HAS_IT = "3.9"
JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class ZooKeeper:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        (folder / "zoo.cfg").write_text(
            f"tickTime=500\ndataDir={folder / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n"
        )
        self.start()

    def start(self) -> None:
        """Also after its end, on the same data and port."""
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        program = "org.apache.zookeeper.server.ZooKeeperServerMain"
        classes = f"{kafka_jars(KAFKA_THAT_HAS_IT)}/*"
        command = ["java", *JAVA, logging, "-cp", classes, program, str(self.folder / "zoo.cfg")]
        self.child = Child(command, self.folder / "zookeeper.log")
        eventually(self._answers, "ZooKeeper answers")

    def _answers(self) -> bool:
        if not self.child.running():
            raise AssertionError(f"ZooKeeper ended at once:\n{self.child.log()[-3000:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
                # `ruok` is answered before sessions are taken.
                connection.sendall(b"srvr")
                return b"Mode:" in connection.makefile("rb").read()
        except OSError:
            return False

    def pause(self) -> None:
        """It stays connected and answers nothing, until `resume`."""
        self.child.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.child.signal(signal.SIGCONT)

    def kill(self) -> None:
        self.child.signal(signal.SIGKILL)
        self.child.wait()

    def stop(self) -> None:
        self.resume()
        self.child.stop()
