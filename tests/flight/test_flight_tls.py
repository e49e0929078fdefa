"""With the data port's certificate, Flight SQL's port is encrypted too."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import OperationalError

from harness.certificate import Certificate, made_in
from harness.duckdb import DuckDbGateway
from harness.flight import Service

ROOTS, SKIP = DatabaseOptions.TLS_ROOT_CERTS.value, DatabaseOptions.TLS_SKIP_VERIFY.value


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return made_in(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Service]:
    config = f"[http]\ntls_certificate = '{certificate.cert}'\ntls_key = '{certificate.key}'\n"
    gateway = DuckDbGateway(tmp_path_factory.mktemp("secured"), config=config)
    uri = gateway.flight.replace("grpc://", "grpc+tls://")
    yield Service(uri, "default", "", "main", gateway.http, True)
    assert gateway.stop() == 0


@pytest.mark.parametrize("trust", ["roots", "any"])
def test_rows_in_and_out(secured: Service, certificate: Certificate, trust: str) -> None:
    options = {ROOTS: certificate.cert.read_text()} if trust == "roots" else {SKIP: "true"}
    with secured.cursor(**options) as cursor:
        assert cursor.adbc_ingest("t", pyarrow.table({"a": range(100_000)}), mode="replace") == 100_000
        cursor.execute("SELECT count(*), sum(a) FROM t")
        assert cursor.fetchone() == (100_000, sum(range(100_000)))


def test_a_client_that_trusts_nobody_here(secured: Service) -> None:
    with pytest.raises(OperationalError, match="certificate"), secured.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_plain_text_is_not_answered(secured: Service) -> None:
    plain = Service(secured.uri.replace("grpc+tls://", "grpc://"), "default", "", "main", secured.http, True)
    with pytest.raises(OperationalError), plain.cursor() as cursor:
        cursor.execute("SELECT 1")
