"""Unsigned tokens, as the broker under test takes them for OAUTHBEARER."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

from harness.kafka import USER


def token(folder: Path, seconds: int = 3600) -> Path:
    """A file with one that is valid for so long."""
    now = time.time()
    claims = {"sub": USER, "iat": now, "exp": now + seconds}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "none"}, claims))
    path = folder / "token"
    path.write_text(".".join(parts) + ".\n")
    return path
