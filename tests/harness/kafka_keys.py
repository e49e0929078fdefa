"""Keys of a broker under test: an authority that nobody else trusts, and what it has signed."""

from __future__ import annotations

import subprocess
from pathlib import Path

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Keys:
    """`ca` is what a client has to trust; `client` and `client_key` are for one that shows who it is, which it may."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.ca, self._ca_key = folder / "ca.pem", folder / "ca-key.pem"
        self.client, self.client_key = folder / "client.pem", folder / "client-key.pem"
        if not self.ca.exists():
            self._make()

    def server_settings(self) -> dict[str, object]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.folder / "server-store.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
            "listener.name.ssl.ssl.client.auth": "requested",
        }

    def _make(self) -> None:
        extension = ["-addext", "basicConstraints=critical,CA:TRUE"]
        openssl("req", "-x509", *NEW_KEY, "-days", "30", "-subj", "/CN=test authority", *extension,
                "-keyout", self._ca_key, "-out", self.ca)  # fmt: skip
        self._sign("localhost", self.folder / "server.pem", self.folder / "server-key.pem")
        self._sign("client", self.client, self.client_key)
        pair = (self.folder / "server-key.pem").read_text() + (self.folder / "server.pem").read_text()
        (self.folder / "server-store.pem").write_text(pair)

    def _sign(self, name: str, certificate: Path, key: Path) -> None:
        extension = [
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]
        openssl("req", "-x509", *NEW_KEY, "-days", "30", "-subj", f"/CN={name}", *extension,
                "-CA", self.ca, "-CAkey", self._ca_key, "-keyout", key, "-out", certificate)  # fmt: skip


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
