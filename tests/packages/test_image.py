"""The image of deploy/Dockerfile, put together by the commands in it, but for those that fetch from the network and compile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployment.files import DEPLOY, SECRETS, commands, image_environment, read
from harness.clean_root import BROUGHT, NOTICES, CleanRoot
from harness.duckdb import duckdb_library
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.paths import ROOT, gateway_binary
from harness.process import inherited_environment

# Of what is in it, as Docker counts it.
MOST_BYTES = 120_000_000


@pytest.fixture
def image(root: CleanRoot) -> Iterator[Path]:
    _, made, _ = read("dockerfile")
    fetches, puts_together = (command["words"][0] for command in made["commands"])
    assert set(fetches.split("--no-install-recommends ")[1].split()) <= set(BROUGHT), "the root of the tests has them"
    root.succeed("sh", "-c", puts_together)
    image = root.path / "image"
    [finish] = (command["words"][0] for command in commands("RUN"))
    assert in_image(image, "sh", "-c", finish, environment={}) == 0
    subprocess.run(["strip", "-o", image / "usr/bin/windrow", gateway_binary()], check=True)
    (image / "etc/windrow").mkdir()
    shutil.copy(DEPLOY / "windrow.toml", image / "etc/windrow")
    yield image


def in_image(image: Path, *command: str, environment: dict[str, str], user: str = "0:0") -> int:
    known = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment}
    return subprocess.run(["chroot", f"--userspec={user}", image, *command], env=known, check=False).returncode


def user() -> str:
    [named] = (each["value"] for each in commands("USER"))
    return named


class Container(Gateway):
    """A gateway in the image, over a DuckDB whose library was added to it."""

    def __init__(self, image: Path, log_folder: Path):
        self.image = image
        super().__init__(log_folder)

    def start(self) -> None:
        ports = {f"WINDROW_{port}_LISTEN": "127.0.0.1:0" for port in ("HTTP", "NATIVE", "ADMIN")}
        given = {"WINDROW_BACKEND": "duckdb::memory:", "WINDROW_ADMIN_TOKEN": SECRETS["WINDROW_ADMIN_TOKEN"], **ports}
        self.environment = {**image_environment(), **given}
        super().start()
        self.http = self.http.as_user("default", "")

    def command(self) -> list[str]:
        [[entry], [arguments]] = (commands(name) for name in ("ENTRYPOINT", "CMD"))
        return ["chroot", f"--userspec={user()}", str(self.image), *entry["words"], *arguments["words"]]

    def direct_endpoint(self) -> Endpoint:
        return self.http

    def health(self) -> int:
        [check] = commands("HEALTHCHECK")
        how, *command = check["words"]
        assert how == "CMD"
        known = {**self.environment, "WINDROW_ADMIN_LISTEN": f"{self.admin.host}:{self.admin.port}"}
        return in_image(self.image, *command, environment=known, user=user())


@pytest.fixture
def container(image: Path, tmp_path: Path) -> Iterator[Container]:
    shutil.copy(duckdb_library(), image / "usr/lib/libduckdb.so")
    container = Container(image, tmp_path / "log")
    yield container
    container.stop()


def test_it_is_small(image: Path) -> None:
    files = [Path(folder) / name for folder, _, names in os.walk(image) for name in names]
    size = sum(file.lstat().st_size for file in files if not file.is_symlink())
    assert size < MOST_BYTES, f"{size:,} bytes"


def test_licences_and_the_bill_of_materials_go_along(tmp_path: Path) -> None:
    """Made by what the Dockerfile says, of nothing but what it copies."""
    build, _, _ = read("dockerfile")
    for command in build["commands"]:
        if command["name"] == "COPY":
            for source in command["sources"]:
                take(source, tmp_path / command["target"])
    *_, makes = (command["words"][0] for command in build["commands"] if command["name"] == "RUN")
    environment = {**inherited_environment(), "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(["sh", "-e", "-c", makes], cwd=tmp_path, env=environment, check=True)
    made = {path.name: path for path in (tmp_path / "documents").iterdir()}
    [bill] = made.keys() - {"LICENSE", NOTICES}
    assert re.fullmatch(r"windrow-[\d.]+\.cdx\.json", bill) and json.loads(made[bill].read_text())["components"]
    assert "Windrow is made with these" in made[NOTICES].read_text()
    [taken] = (command for command in commands("COPY") if command["sources"] == ["/build/documents"])
    assert (taken["from"], taken["target"]) == ("build", "/usr/share/doc/windrow")


def take(source: str, target: Path) -> None:
    """As COPY does, without what deploy/Dockerfile.dockerignore leaves out."""
    if (ROOT / source).is_dir():
        shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("target", "*.so", "node_modules"))
    else:
        file = target if target.name == Path(source).name else target / source
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, file)


def test_its_gateway_serves(container: Container) -> None:
    container.http.sql("CREATE TABLE t (id INTEGER)")
    container.http.sql("INSERT INTO t VALUES (1)")
    assert container.http.sql("SELECT id FROM t") == "1"
    assert container.health() == 0
    assert container.stop() == 0
    assert container.health() == 1
    # What kubernetes.yaml calls before it ends a pod.
    assert in_image(container.image, "sleep", "0", environment={}) == 0
