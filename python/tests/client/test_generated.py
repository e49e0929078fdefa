"""The synchronous client is what the asynchronous source says."""

import importlib.util
from pathlib import Path

import windrow

TOOL = Path(__file__).resolve().parents[2] / "tools" / "async_to_sync.py"


def load_tool():
    spec = importlib.util.spec_from_file_location("async_to_sync", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_installed_was_made_from_these_sources():
    made = load_tool().outcome()
    installed = Path(windrow.__file__).parent / "_sync"
    assert made, "there is nothing to make it from"
    for path, text in made.items():
        assert (installed / path.name).read_text() == text, path.name
        compile(text, path.name, "exec")


def test_both_clients_can_do_the_same():
    def public(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert public(windrow.Client) == {
        load_tool().WORDS.get(name, name) for name in public(windrow.AsyncClient)
    }


def test_words_in_strings_stay_and_marks_hold():
    source = (
        "async def f(x: AsyncClient) -> None:\n"
        '    """Example: await x.query()."""\n'
        "    async with x as y:\n"
        '        say("await it", await y.aclose())\n'
        "        import asyncio  # async only\n"
        "        lock = asyncio.Lock()  # sync only: lock = threading.Lock()\n"
    )
    made = load_tool().converted(source, "f.py")
    assert made.splitlines()[1:] == [
        "def f(x: Client) -> None:",
        '    """Example: x.query()."""',
        "    with x as y:",
        '        say("await it", y.close())',
        "        lock = threading.Lock()",
    ]
