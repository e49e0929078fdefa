"""The synchronous client."""

from windrow._sync.client import Client

__all__ = ["Client"]
