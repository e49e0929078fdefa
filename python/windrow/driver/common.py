"""Streams."""

from windrow._async.streams import StreamContext as AsyncStreamContext
from windrow._sync.streams import StreamContext

__all__ = ["AsyncStreamContext", "StreamContext"]
