"""What a package is made of besides Windrow's own code: crates, JavaScript that is served, libraries that are fetched beside it.

Read from the lock files and from the sources that cargo has fetched; nothing is asked of a network.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The program, and the compiled part of the Python package.
ROOTS = ("windrow", "windrow-python")
VENDORED = (ROOT / "dashboard" / "vendor", ROOT / "examples" / "upclick" / "page" / "vendor")
# Loaded at run time, and in no package.
FETCHED = {"embedded": "Apache-2.0", "duckdb": "MIT"}
A_TEXT = re.compile(r"(UN)?LICEN[SC]E|COPYING|COPYRIGHT|NOTICE", re.IGNORECASE)
CODE = (".rs", ".sh", ".py", ".c", ".h")
# Another choice than the one that was taken: zstd's BSD, xz's 0BSD.
NOT_TAKEN = re.compile(r"\s*GNU (LESSER )?GENERAL PUBLIC LICENSE")
# Crates that forgot the text, and whose text it is: the same authors'. Apache's is the same for all.
TEXT_OF = {"alloc-stdlib": "alloc-no-stdlib", "tonic-prost": "tonic"}


@dataclass(frozen=True)
class Component:
    name: str
    version: str
    # An expression of SPDX.
    licence: str
    purl: str
    folder: Path | None = None
    sha256: str = ""
    source: str = ""
    # The purls of what it needs.
    needs: tuple[str, ...] = field(default=())
    # In every package, or fetched only by who wants it.
    is_optional: bool = False

    def texts(self) -> list[str]:
        """Of licences and notices, also of what it brings along from others."""
        if self.folder is None:
            return []
        named = [file for file in self.folder.rglob("*") if A_TEXT.match(file.name) and file.suffix not in CODE]
        texts = [file.read_text("utf-8", "replace").strip() for file in sorted(named) if file.is_file()]
        return [text for text in texts if text and not NOT_TAKEN.match(text)]


@dataclass(frozen=True)
class Crates:
    """Of others, by name."""

    components: list[Component]
    # What Windrow's own crates ask for.
    direct: list[str]


def workspace_version() -> str:
    section = (ROOT / "Cargo.toml").read_text().split("[workspace.package]")[1]
    return re.search(r'^version = "(.+)"$', section, re.MULTILINE)[1]


def crates(roots: tuple[str, ...] = ROOTS) -> Crates:
    """Those that are compiled into the packages for this platform."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", of_the_compiler("host")]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    needed = {
        node["id"]: [other["pkg"] for other in node["deps"] if any(kind["kind"] is None for kind in other["dep_kinds"])]
        for node in found["resolve"]["nodes"]
    }
    inside = [package for package in packages.values() if not package["source"]]
    outside = [package for package in packages.values() if package["source"] and key(package) in compiled_into(roots)]
    locked = checksums()
    known = {package["id"] for package in outside}
    components = [of_crate(package, packages, [other for other in needed[package["id"]] if other in known], locked) for package in outside]
    reached = {package["id"] for package in inside if key(package) in compiled_into(roots)}
    direct = {purl_of(packages[other]) for package_id in reached for other in needed[package_id] if other in known}
    return Crates(sorted(components, key=lambda one: (one.name, one.version)), sorted(direct))


@cache
def compiled_into(roots: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Cargo's metadata has the features that any member of the workspace asks for; its tree, those of one program."""
    command = ["cargo", "tree", "--locked", "-e", "normal", "--prefix", "none", "--format", "{p}"]
    lines: list[str] = []
    for root in roots:
        lines += subprocess.run([*command, "-p", root], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return frozenset((line.split()[0], line.split()[1].removeprefix("v")) for line in lines if line)


def key(package: dict) -> tuple[str, str]:
    return package["name"], package["version"]


def of_crate(package: dict, packages: dict[str, dict], needed: list[str], locked: dict) -> Component:
    name, version = package["name"], package["version"]
    licence = re.sub(r"\s*/\s*", " OR ", package["license"])
    needs = tuple(sorted(purl_of(packages[other]) for other in needed))
    folder = Path(package["manifest_path"]).parent
    return Component(name, version, licence, purl_of(package), folder, locked[name, version], package["repository"] or "", needs)


def checksums() -> dict[tuple[str, str], str]:
    entry = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"')
    return {(name, version): sha256 for name, version, sha256 in entry.findall((ROOT / "Cargo.lock").read_text())}


def standard_library() -> Component:
    """Rust's, with what it is made of."""
    version = of_the_compiler("release")
    return Component("rust-std", version, "MIT OR Apache-2.0", purl("generic", "rust-std", version), source="https://github.com/rust-lang/rust")


def of_the_compiler(what: str) -> str:
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return re.search(rf"^{what}: (.+)$", said, re.MULTILINE)[1]


def vendored() -> list[Component]:
    """A folder of `vendor/` is a package of npm's; the README beside it or in it says its version and licence."""
    found = []
    for licence in sorted(file for vendor in VENDORED for file in vendor.glob("*/LICENSE")):
        name = licence.parent.name
        readme = next(file for folder in (licence.parent, licence.parent.parent) if (file := folder / "README.md").exists())
        said = re.search(rf"^\W*{name}\W+(\d[\d.]*\d).*\b(MIT|ISC)\b", readme.read_text(), re.MULTILINE | re.IGNORECASE)
        found.append(Component(name, said[1], said[2], purl("npm", name, said[1]), licence.parent))
    return found


def fetched() -> list[Component]:
    """The embedded ClickHouse and DuckDB's library: scripts/setup brings them, and install scripts do."""
    found = []
    for folder, licence in FETCHED.items():
        for name, version in json.loads((ROOT / folder / "package.json").read_text())["optionalDependencies"].items():
            found.append(Component(name, version, licence, purl("npm", name.replace("@", "%40"), version), is_optional=True))
    return found


def purl_of(package: dict) -> str:
    return purl("cargo", package["name"], package["version"])


def purl(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{name}@{version.replace('+', '%2B')}"
