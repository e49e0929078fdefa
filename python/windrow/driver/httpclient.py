"""The synchronous client, under the name of its protocol."""

from windrow._sync.client import Client as HttpClient

__all__ = ["HttpClient"]
