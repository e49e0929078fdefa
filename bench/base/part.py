"""A benchmark as its command line knows it: a name, a title, and options with their defaults, of which the command is made that
stands above its figures."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.base.stack import Stack


@dataclass(frozen=True)
class Option:
    """A list is given with commas; `None` is a number that need not be given."""

    default: Any
    help: str = ""
    choices: tuple[str, ...] = ()
    # Named in the command only when it was changed.
    rare: bool = False


@dataclass
class Part:
    name: str
    title: str
    options: dict[str, Option]
    # What makes it short, to see whether it works.
    quick: dict[str, Any]
    help: str
    run: Callable[[Stack, Namespace], str | tuple[str, dict[str, str]]]
    # Variables that the gateway is started with.
    environment: Callable[[Namespace], dict[str, str]] = field(default=lambda options: {})

    def command(self, chosen: Namespace) -> str:
        words = [f"bench/run {self.name}"]
        for name, option in self.options.items():
            value = getattr(chosen, name)
            if value in (None, False, []) or (option.rare and value == option.default):
                continue
            flag = f"--{name.replace('_', '-')}"
            texts = [f"{one:g}" if isinstance(one, float) else str(one) for one in (value if isinstance(value, list) else [value])]
            words += [flag] if value is True else [f"{flag} {','.join(texts)}"]
        return " ".join(words)

    def add_to(self, parser: ArgumentParser) -> None:
        for name, option in self.options.items():
            flag, default = f"--{name.replace('_', '-')}", option.default
            if isinstance(default, bool):
                parser.add_argument(flag, action="store_true", help=option.help)
                continue
            is_list = isinstance(default, list)
            kind = list_of(default, option) if is_list else int if default is None else type(default)
            choices = None if is_list else option.choices or None
            parser.add_argument(flag, type=kind, default=default, choices=choices, help=option.help)

    def defaults(self, quick: bool) -> dict[str, Any]:
        return {name: option.default for name, option in self.options.items()} | (self.quick if quick else {})


def list_of(default: list[Any], option: Option) -> Callable[[str], list[Any]]:
    def parse(text: str) -> list[Any]:
        values = [(type(default[0]) if default else str)(one) for one in text.split(",")]
        if option.choices and set(values) - set(option.choices):
            raise ValueError(text)
        return values

    return parse


PARTS: dict[str, Part] = {}


def part(name: str, title: str, quick: dict[str, Any] | None = None, **options: Option) -> Callable[..., Any]:
    """Makes a benchmark of a function that measures and returns what the page says, perhaps with charts."""

    def register(run: Callable[..., Any]) -> Part:
        PARTS[name] = Part(name, title, options, quick or {}, (run.__doc__ or "").partition("\n\n")[0], run)
        return PARTS[name]

    return register
