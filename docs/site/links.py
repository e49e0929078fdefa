"""What the site needs beyond the pages themselves: the list of decisions, and links to files that it does not have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Puts every decision in the place that the navigation keeps for them."""
    pages = Path(config.docs_dir)
    decisions = sorted(str(path.relative_to(pages)) for path in (pages / "docs" / "decisions").glob("*.md"))
    for entry in config.nav:
        if "Decisions" in entry:
            entry["Decisions"] = decisions
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A link to a file or folder of the repository that is no page becomes its name; to a folder with a page, that."""
    here = Path(page.file.src_path).parent

    def replaced(found: re.Match[str]) -> str:
        text, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        if "://" in target or target.startswith("mailto:"):
            return found.group(0)
        inside = normal(here / target)
        if files.get_file_from_path(inside):
            return found.group(0)
        if files.get_file_from_path(f"{inside}/README.md"):
            return f"[{text}]({target.rstrip('/')}/README.md{anchor})"
        return text if text.strip("`") in inside else f"{text} (`{inside}`)"

    return LINK.sub(replaced, markdown)


def normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
