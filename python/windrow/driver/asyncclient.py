"""The asynchronous client."""

from windrow._async.client import AsyncClient

__all__ = ["AsyncClient"]
