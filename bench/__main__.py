"""Windrow's benchmarks. `bench/run` builds what they need and starts this; docs/benchmarks.md is what it writes."""

import argparse
import importlib
import os
import sys
from argparse import Namespace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The servers under test are started as the whole-system tests start them; programs of the benchmarks' own need that, too.
sys.path.insert(0, str(ROOT / "tests"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))

from bench.base.document import REGIONS, Section, write_section  # noqa: E402
from bench.base.machine import await_quiet, describe  # noqa: E402
from bench.base.part import PARTS, Part  # noqa: E402
from bench.base.processes import raise_open_files  # noqa: E402
from bench.base.stack import Stack, binary  # noqa: E402

for module in sorted((ROOT / "bench" / "parts").glob("*.py")):
    importlib.import_module(f"bench.parts.{module.stem}")


def parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--windrow", type=Path, help="the gateway's binary, if not the one that was built")
    common.add_argument("--clickhouse", metavar="URL", help="a ClickHouse that runs already; starts no gateway")
    common.add_argument("--clickhouse-pid", type=int, help="its process, for CPU time and memory")
    common.add_argument("--gateway", metavar="URL", help="a gateway in front of it that runs already")
    common.add_argument("--gateway-pid", type=int, help="its process, for CPU time and memory")
    common.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a setting of the gateway")
    common.add_argument("--write", type=Path, metavar="DOCS", help="write into benchmarks.md of this folder as well")
    top = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    chosen = top.add_subparsers(dest="part", required=True)
    everything = chosen.add_parser("all", parents=[common], help="all of them, one after the other: about half an hour")
    everything.add_argument("--quick", action="store_true", help="everything briefly: the figures are worth little")
    for part in PARTS.values():
        part.add_to(chosen.add_parser(part.name, parents=[common], help=part.help))
    return top


def measure(part: Part, options: Namespace) -> None:
    """Each part gets a stack of its own: none inherits what another left in memory."""
    if options.write:
        await_quiet()
    stack = Stack(options, part.environment(options))
    machine = describe(stack.clickhouse, binary("windrow") if stack.has_gateway else None)
    found = part.run(stack, options)
    stack.close()
    body, charts = found if isinstance(found, tuple) else (found, {})
    command = part.command(options) + "".join(f" --env {pair}" for pair in options.env)
    print(f"{command}\n{machine}\n\n{body}")
    if options.write:
        write_section(options.write, Section(part.name, part.title, command, body, charts), machine)


def main() -> None:
    options = parser().parse_args()
    os.environ["WINDROW_BINARY"] = str(options.windrow or binary("windrow"))
    raise_open_files()
    names, failed = REGIONS if options.part == "all" else (options.part,), []
    for name in names:
        part = PARTS[name]
        given = part.defaults(options.quick) if options.part == "all" else {}
        try:
            measure(part, Namespace(**{**vars(options), **given}))
        except (Exception, SystemExit) as error:
            # One that fails doesn't keep the others from being measured.
            print(f"bench: {name}: {error!r}", file=sys.stderr)
            failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
