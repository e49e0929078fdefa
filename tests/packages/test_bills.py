"""What packages are made of: the bill of materials, the licences that go along, and whether they may.

The oracles are others' programs: CycloneDX's own schema, cargo's tree of dependencies, and cargo-deny.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from harness.paths import ROOT, gateway_binary

BILLS = ("windrow", "windrow-python")
# Rust's standard library is made of them, and is one entry.
OF_RUST = {"addr2line", "gimli", "hashbrown", "miniz_oxide", "rustc-demangle"}
USERS = r"\S+ \d\S*(?:, \S+ \d\S*)*"
# Of what is compiled into the program from C, beside the crates' own: each author's line.
IN_C = {"zstd-sys": "Meta Platforms, Inc", "tikv-jemalloc-sys": "Jason Evans", "ring": "Brian Smith"}

# As cargo-deny names it, by the address that it was fetched from.
COPY_OF_THE_LIST = "advisory-db-3157b0e258782691"
WEAKNESS = """\
```toml
[advisory]
id = "{name}"
package = "{crate}"
date = "2026-01-02"

[versions]
patched = []
```

# A weakness of the test

It is in all versions.
"""


def made(kind: str, into: Path) -> Path:
    environment = {**os.environ, "DIST": str(into), "VERSION": "9.9.9", "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([str(ROOT / "scripts" / "packages" / kind)], env=environment, check=True)
    return into


def seen_in_the_program(known: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Crates whose files it names where it panics."""
    found = {
        (name.decode(), version.decode())
        for name, version in re.findall(rb"/([A-Za-z0-9_-]+)-(\d+\.\d+\.\d+[A-Za-z0-9.+-]*)/src/[a-z0-9_/]+\.rs", gateway_binary().read_bytes())
    }
    assert len(found) > 50
    return {crate for crate in found if crate in known or crate[0] not in OF_RUST}


def test_the_bills_of_materials_are_whole_and_always_the_same(tmp_path: Path) -> None:
    first, second = made("sbom", tmp_path / "first"), made("sbom", tmp_path / "second")
    assert sorted(path.name for path in first.iterdir()) == sorted(f"{name}-9.9.9.cdx.json" for name in BILLS)
    for file in first.iterdir():
        content = json.loads(file.read_text())
        crates = {(one["name"], one["version"]) for one in content["components"] if one["purl"].startswith("pkg:cargo/")}
        if file.name.startswith("windrow-9"):
            assert seen_in_the_program(crates) <= crates
        assert all(one["hashes"] for one in content["components"] if one["purl"].startswith("pkg:cargo/"))
        subject, components = content["metadata"]["component"]["bom-ref"], {one["bom-ref"] for one in content["components"]}
        assert {one["ref"] for one in content["dependencies"]} == {subject, *components}
        assert {ref for one in content["dependencies"] for ref in one["dependsOn"]} == components
        assert (second / file.name).read_bytes() == file.read_bytes()


def test_a_bill_of_materials_is_one_by_the_schema_of_cyclonedx(tmp_path: Path) -> None:
    text = (made("sbom", tmp_path) / "windrow-9.9.9.cdx.json").read_text()
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    fault = validator.validate_str(text)
    assert fault is None, fault
    assert validator.validate_str(text.replace('"type": "library"', '"type": "shelf"', 1)) is not None


def test_what_the_browser_gets_and_what_is_fetched_is_in_the_bill(tmp_path: Path) -> None:
    content = json.loads((made("sbom", tmp_path) / "windrow-9.9.9.cdx.json").read_text())
    scopes = {one["name"]: one["scope"] for one in content["components"] if one["purl"].startswith("pkg:npm/")}
    served = {licence.parent.name for licence in ROOT.glob("*/vendor/*/LICENSE")}
    served |= {licence.parent.name for licence in ROOT.glob("examples/*/page/vendor/*/LICENSE")}
    assert "uplot" in served and {name for name, scope in scopes.items() if scope == "required"} == served
    assert {"@chdb/lib-linux-x64-gnu", "@duckdb/node-bindings-linux-x64"} <= set(scopes)


def test_each_licence_goes_along(tmp_path: Path) -> None:
    text = (made("notices", tmp_path / "first") / "THIRD-PARTY-NOTICES.txt").read_text()
    named = set(re.findall(r"^  (\S+) (\S+): ", text, re.MULTILINE))
    assert seen_in_the_program(named) <= named
    entries = [(users, body) for users, body in zip(*[iter(re.split(rf"^-{{80}}\n({USERS})\n-{{80}}\n", text, flags=re.MULTILINE)[1:])] * 2)]
    with_text = {tuple(user.split(" ")) for users, body in entries for user in users.split(", ") if body.strip()}
    assert with_text == named
    for name, author in IN_C.items():
        assert any(f"{name} " in users and author in body for users, body in entries), f"{name}: {author}"
    # What Apache's licence wants to be passed on.
    assert any("arrow-array " in users and "Apache Arrow" in body and "This product includes" in body for users, body in entries)
    assert "GNU GENERAL PUBLIC LICENSE\n" not in text
    assert (made("notices", tmp_path / "second") / "THIRD-PARTY-NOTICES.txt").read_text() == text


def test_the_licences_may_be_taken_and_all_crates_come_from_where_crates_come_from() -> None:
    search = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
    checked = subprocess.run([str(ROOT / "scripts" / "deny"), "--offline"], env={**os.environ, "PATH": search}, check=False)
    assert checked.returncode == 0


def test_a_weakness_in_the_copy_of_the_list_fails_where_the_list_cannot_be_fetched(tmp_path: Path) -> None:
    search = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
    # Cargo's own folder, but for the copies of the list.
    for each in Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).iterdir():
        if each.name != "advisory-dbs":
            (tmp_path / each.name).symlink_to(each)
    # Nobody listens there, so that the list is out of reach wherever the tests run.
    nowhere = {name: "http://127.0.0.1:1" for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY")}
    environment = {**os.environ, **nowhere, "PATH": search, "CARGO_HOME": str(tmp_path), "WINDROW_STRICT": ""}

    def checked() -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(ROOT / "scripts" / "deny")], env=environment, capture_output=True, text=True, check=False)

    without = checked()
    assert without.returncode == 0 and "known weaknesses were not checked" in without.stdout
    copy = tmp_path / "advisory-dbs" / COPY_OF_THE_LIST

    def add(name: str, crate: str) -> None:
        folder = copy / "crates" / crate
        folder.mkdir(parents=True)
        (folder / f"{name}.md").write_text(WEAKNESS.format(name=name, crate=crate))
        git = ("git", "-C", str(copy), "-c", "user.name=x", "-c", "user.email=x@x")
        for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", name], ["fetch", "--quiet", ".", "HEAD"]):
            subprocess.run([*git, *command], check=True)

    add("RUSTSEC-2026-9998", "no-crate-of-ours")
    harmless = checked()
    assert harmless.returncode == 0 and "not checked" not in harmless.stdout, harmless.stderr
    add("RUSTSEC-2026-9999", "memchr")
    found = checked()
    assert found.returncode != 0 and "RUSTSEC-2026-9999" in found.stderr
