"""An async-native ClickHouse client, and a writer that gathers rows and keeps what it took."""

from windrow._core import __version__

__all__ = ["__version__"]
