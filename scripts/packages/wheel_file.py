"""Writes wheels of files that are there already: a program, a library, a few lines of Python. What is compiled for Python itself,
maturin makes.

As in all packages the commit's time is the time of all files, so that the same files make the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("DIST", ROOT / "dist"))
# What wheels of Linux promise to run on, unless the files in them ask for more.
OLDEST_GLIBC = (2, 28)
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
CHUNK = 1 << 20
# To compress a large library takes a minute, which tests don't have: LEVEL=0 leaves it as it is.
COMPRESSES = os.environ.get("LEVEL") != "0"

ABOUT = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: {summary}
Keywords: clickhouse,duckdb,insert,batch,gateway
License-Expression: {licence}
{licence_files}Classifier: Development Status :: 4 - Beta
Classifier: Intended Audience :: Developers
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Database
Requires-Python: >=3.10
{requires}Description-Content-Type: text/markdown

"""


@dataclass
class Wheel:
    """`files`: where they are in the wheel, and where they come from."""

    name: str
    version: str
    summary: str
    licence: str
    readme: Path
    files: dict[str, Path]
    # Libraries and programs among them, which say for what machines the wheel is.
    binaries: list[Path]
    licences: list[Path]
    parts_lists: list[Path] = field(default_factory=list)
    requires: list[str] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)

    def write(self) -> Path:
        """Removes other wheels of that name and version: they would be taken for the newer ones."""
        tag = f"py3-none-{platform_tag(self.binaries)}"
        stem = f"{self.name.replace('-', '_')}-{self.version}"
        info = f"{stem}.dist-info"
        texts = {f"{info}/METADATA": self.metadata(), f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: windrow\nRoot-Is-Purelib: false\nTag: {tag}\n"}
        if self.commands:
            lines = "".join(f"{command} = {function}\n" for command, function in sorted(self.commands.items()))
            texts[f"{info}/entry_points.txt"] = f"[console_scripts]\n{lines}"
        files = dict(self.files)
        files |= {f"{info}/licenses/{path.name}": path for path in self.licences}
        files |= {f"{info}/sboms/{path.name}": path for path in self.parts_lists}
        DIST.mkdir(parents=True, exist_ok=True)
        target = DIST / f"{stem}-{tag}.whl"
        unfinished = target.with_suffix(".unfinished")
        with zipfile.ZipFile(unfinished, "w") as archive:
            records = [add(archive, name, source) for name, source in sorted(files.items())]
            records += [add(archive, name, text.encode()) for name, text in sorted(texts.items())]
            add(archive, f"{info}/RECORD", "".join([*records, f"{info}/RECORD,,\n"]).encode())
        unfinished.rename(target)
        return target

    def metadata(self) -> str:
        return (
            ABOUT.format(
                name=self.name,
                version=self.version,
                summary=self.summary,
                licence=self.licence,
                licence_files="".join(f"License-File: {path.name}\n" for path in self.licences),
                requires="".join(f"Requires-Dist: {each}\n" for each in self.requires),
            )
            + self.readme.read_text()
        )


def add(archive: zipfile.ZipFile, name: str, content: Path | bytes) -> str:
    """One file; its line of RECORD."""
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)
    entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
    is_program = isinstance(content, Path) and os.access(content, os.X_OK)
    entry.external_attr = (0o100755 if is_program else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED if COMPRESSES else zipfile.ZIP_STORED
    size, digest = 0, hashlib.sha256()
    with archive.open(entry, "w", force_zip64=True) as written:
        for chunk in chunks(content):
            written.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return f"{name},sha256={base64.urlsafe_b64encode(digest.digest()).rstrip(b'=').decode()},{size}\n"


def chunks(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def program() -> Path:
    """scripts/package says where it is."""
    path = Path(os.environ.get("WINDROW_BINARY", ""))
    if not path.is_file():
        raise SystemExit("WINDROW_BINARY names no program: `scripts/portable` builds one, and prints where it is")
    return path


def platform_tag(binaries: list[Path]) -> str:
    """Of the machine that all are for, and the newest glibc that one of them asks for."""
    [machine] = {machine_of(path) for path in binaries}
    asked = (readelf("--version-info", path) for path in binaries)
    found = {tuple(map(int, version)) for text in asked for version in re.findall(r"\bGLIBC_(\d+)\.(\d+)", text)}
    major, minor = max(found | {OLDEST_GLIBC})
    return f"manylinux_{major}_{minor}_{machine}"


def machine_of(path: Path) -> str:
    named = re.search(r"Machine:\s+(.*)", readelf("--file-header", path))
    assert named, f"{path} is no program or library of Linux"
    return MACHINES[named[1]]


def readelf(option: str, path: Path) -> str:
    return subprocess.run(["readelf", "--wide", option, str(path)], check=True, capture_output=True, text=True).stdout


def locked_version(folder: str, package: str) -> str:
    """Of an npm package, as the lock of that folder pins it."""
    lines = (ROOT / folder / "package.json").read_text()
    found = re.search(rf'"{re.escape(package)}": "([^"]+)"', lines)
    assert found, f"{folder}/package.json does not name {package}"
    return found[1]


def locked_package(folder: str, package: str, machine: str) -> Path:
    """The folder of that npm package: what `scripts/setup` fetched, or, for another machine, fetched now. npm checks the sum that
    the lock has."""
    own = ROOT / folder / "node_modules" / package
    if own.is_dir():
        return own
    there = ROOT / "target" / "packages" / machine / folder
    fetched = there / "node_modules" / package
    if not fetched.is_dir():
        there.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            (there / name).write_bytes((ROOT / folder / name).read_bytes())
        cpu = {"x86_64": "x64", "aarch64": "arm64"}[machine]
        wanted = ["--os=linux", f"--cpu={cpu}", "--libc=glibc"]
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund", *wanted], cwd=there, check=True)
    # For npm it is optional, so that it says nothing.
    if not fetched.is_dir():
        raise SystemExit(f"npm could not fetch {package} {locked_version(folder, package)}: see `npm view {package}`")
    return fetched


def clickhouse_package(machine: str) -> str:
    return f"@chdb/lib-linux-{'arm64' if machine == 'aarch64' else 'x64'}-gnu"


def clickhouse_version(machine: str) -> str:
    """As PyPI writes it: 26.7.3.1 for npm's 26.7.3-stable.1."""
    return locked_version("embedded", clickhouse_package(machine)).replace("-stable", "")


def workspace_version() -> str:
    if named := os.environ.get("VERSION"):
        return named
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found, "Cargo.toml has the version in [workspace.package]"
    return found[1]


def python_version() -> str:
    """As PyPI writes it: 1.0.0rc1 for Cargo's 1.0.0-rc.1."""
    return re.sub(r"-(alpha|beta|rc)\.?", lambda kind: {"alpha": "a", "beta": "b", "rc": "rc"}[kind[1]], workspace_version())
