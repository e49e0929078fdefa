"""The synchronous client is what the asynchronous source says."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "async_to_sync.py"


def load_tool():
    spec = importlib.util.spec_from_file_location("async_to_sync", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_are_fresh():
    assert load_tool().stale() == []


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
