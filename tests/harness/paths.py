"""Where things are in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
# Built client programs and downloaded jars: ignored by git, kept between runs.
CACHE = ROOT / ".cache" / "tests"


def gateway_binary() -> Path:
    path = Path(os.environ.get("WINDROW_BINARY", ROOT / "target" / "release" / "windrow"))
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make build` first")
    return path


def engine_library() -> Path:
    named = os.environ.get("WINDROW_EMBEDDED_ENGINE")
    if named:
        return Path(named)
    found = sorted((ROOT / "embedded" / "node_modules" / "@chdb").glob("lib-*/libchdb.*"))
    if not found:
        raise FileNotFoundError("the engine is missing: run `npm ci` in embedded/, or name it in WINDROW_EMBEDDED_ENGINE")
    return found[0]


def example_binary(name: str) -> Path:
    path = ROOT / "target" / "release" / "examples" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `cargo build --release --example {name}` first")
    return path


def kafka_jars(version: str = "") -> Path:
    """Of the version that `kafka/pom.xml` names, or of another one that `scripts/setup` fetches."""
    own = None if version else os.environ.get("WINDROW_KAFKA_JARS")
    folder = Path(own or ROOT / "kafka" / (f"jars-{version}" if version else "jars"))
    if not any(folder.glob("kafka_*.jar")):
        raise FileNotFoundError(f"no Kafka in {folder}: run `make setup-test`, or name its jars' folder in WINDROW_KAFKA_JARS")
    return folder
