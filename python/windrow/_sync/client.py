# Made from windrow/_async/client.py by python/tools/async_to_sync.py; edit that file.
"""The client: its public attributes, its settings, its end. What it does is in the files that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timezone, tzinfo
from typing import Any

from windrow import common
from windrow._sync.append import Appends
from windrow._sync.arrow import Arrow
from windrow._sync.stopper import Stopper
from windrow._sync.transport import SyncTransport
from windrow._sync.writing import Writing
from windrow._shared.append_state import CommitPlaces
from windrow._shared.calls import Targets
from windrow._shared.contexts import TZ_MODES, TZ_SOURCES, TzMode, TzSource
from windrow._shared.errors import ProgrammingError
from windrow._shared.options import ClientOptions
from windrow._shared.rename import renamer_of
from windrow._shared.settings import OPTIONAL_SETTINGS, TRANSPORT_SETTINGS, checked
from windrow._shared.tables import Remembered

MODE = "sync"
WRITE_ENCODINGS = ("lz4", "zstd", "gzip")


class Client(Arrow, Writing, Appends):
    """A client of one ClickHouse server; `windrow.get_client` makes it.

        with windrow.get_client(host="localhost") as client:
            result = client.query("SELECT version()")

    It may be used by many tasks at once. `close` gives its connections back.
    """

    valid_transport_settings = TRANSPORT_SETTINGS
    optional_transport_settings = OPTIONAL_SETTINGS

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self.url = self.uri = options.url
        self.server_host_name = options.server_host_name
        self.query_limit = int(options.query_limit or 0)
        self.query_retries = int(options.query_retries or 0)
        self.form_encode_query_params = options.form_encode_query_params
        self.tz_mode: TzMode = valid("tz_mode", options.tz_mode or "naive_utc", TZ_MODES)
        self._tz_source: TzSource = valid("tz_source", tz_source_of(options), TZ_SOURCES)
        self._rename_response_column = options.rename_response_column
        renamer_of(options.rename_response_column)  # says at once when the name isn't known
        encoding = options.encoding
        self.compression = encoding
        self.write_compression = encoding if encoding in WRITE_ENCODINGS else "gzip" if encoding else None
        self._read_headers = [("Accept-Encoding", encoding)] if encoding else []
        self._targets = Targets(options.path)
        self._targets.database = options.database
        self._headers = options.default_headers(MODE)
        self._token_provider: Callable[[], Any] | None = options.token_provider
        self._initial_settings = options.settings
        self._own_settings: dict[str, str] = {}
        self._refused_settings: set[str] = set()
        self._session_id = options.session_id
        self._autogenerate_session_id = self._wants_session(options)
        self._autogenerate_query_id = _or_common(options.autogenerate_query_id, "autogenerate_query_id")
        self._active_session: str | None = None
        self._tables = Remembered()
        self._dedups = Remembered()
        self._apply_server_tz = False
        self._dst_safe = True
        self._initialized = False
        self._closed = False
        self.server_version: str | None = None
        self.server_tz: tzinfo = timezone.utc
        self.server_settings = {}
        self.protocol_version = 0
        self._transport = SyncTransport(options.http_options())
        self._commit_places = CommitPlaces(self._transport.options.most_connections)
        self._transport.headers = list(self._headers.items())
        if options.show_clickhouse_errors is not None:
            self.show_clickhouse_errors = options.show_clickhouse_errors
        self._stopper = Stopper(self._kill)

    def __repr__(self) -> str:
        asked = f", server {self.server_version}" if self.server_version else ""
        return f"{type(self).__name__}({self.url}, user {self._options.username!r}, database {self.database!r}{asked})"

    @staticmethod
    def _wants_session(options: ClientOptions) -> bool:
        if options.autogenerate_session_id is not None:
            return bool(options.autogenerate_session_id)
        return bool(common.get_setting("autogenerate_session_id"))

    @property
    def database(self) -> str | None:
        """The database of statements that name none; None for the user's default."""
        return self._targets.database

    @database.setter
    def database(self, name: str | None) -> None:
        self._targets.database = name
        self._targets.changed()
        self._tables.clear()

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers of every request (a copy)."""
        return dict(self._headers)

    @property
    def tz_source(self) -> TzSource:
        """Whose zone holds for columns without one: "server", "local", or "auto" (the server's unless that is in
        doubt).
        """
        return self._tz_source

    @tz_source.setter
    def tz_source(self, value: TzSource) -> None:
        self._tz_source = valid("tz_source", value, TZ_SOURCES)
        self._apply_tz_source()

    def set_client_setting(self, key: str, value: Any) -> None:
        """Sends a setting with every request from now on. ProgrammingError if the server doesn't let it be changed."""
        text = checked(key, value, self.server_settings, self._targets.settings)
        if text is not None:
            self._own_settings.pop(key, None)
            self._targets.settings[key] = text
            self._targets.changed()

    def get_client_setting(self, key: str) -> str | None:
        """The value that is sent with every request, or None."""
        return self._targets.settings.get(key)

    def min_version(self, version_str: str) -> bool:
        """Whether the server is at least of that version, such as "24.8"."""
        try:
            wanted = [int(part) for part in version_str.split(".")]
        except ValueError:
            return False
        known = [int(part) for part in (self.server_version or "").split(".") if part.isnumeric()]
        size = max(len(wanted), len(known), 4)
        return known + [0] * (size - len(known)) >= wanted + [0] * (size - len(wanted))

    def statistics(self) -> dict[str, int]:
        """The connections of this client: "open", "idle", "in_use", and how many requests wait for one ("waiting")."""
        return self._transport.statistics()

    def close_connections(self) -> None:
        """Gives all connections back; new requests make new ones, requests under way end as they would."""
        self._transport.close_connections()

    def close(self) -> None:
        """Ends the client: stops what is still under way and gives its connections back."""
        self._stopper.close()
        self._transport.close()

    def __enter__(self) -> Client:
        self._initialize()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def tz_source_of(options: ClientOptions) -> str:
    """`tz_source`, or what the older argument apply_server_timezone means by it."""
    if options.tz_source is not None:
        return options.tz_source
    older = options.apply_server_timezone
    if older is None or older is True:
        return "auto"
    return "local" if older is False else "server" if older == "always" else str(older)


def valid(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """The value, if it is one of the allowed ones."""
    if value not in allowed:
        raise ProgrammingError(f"{name}={value!r} isn't known: use one of {', '.join(allowed)}")
    return value


def _or_common(given: bool | None, name: str) -> bool:
    return bool(common.get_setting(name) if given is None else given)
