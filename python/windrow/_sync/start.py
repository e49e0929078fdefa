# Made from windrow/_async/start.py by python/tools/async_to_sync.py; edit that file.
"""How a client starts: one question to the server, for its version, its zone and its settings."""

from __future__ import annotations

import logging
from datetime import timezone, tzinfo
from typing import Any

from windrow import common
from windrow._sync.inserts import Inserts
from windrow._shared.calls import new_id
from windrow._shared.contexts import QueryContext
from windrow._shared.errors import OperationalError
from windrow._shared.options import ClientOptions
from windrow._shared.settings import SettingDef, SettingStatus, checked, setting_status
from windrow._shared.timezones import find_zone, is_dst_safe, local_timezone

logger = logging.getLogger("windrow.client")

# client_protocol_version: from this one on a result carries time zones.
PROTOCOL_VERSION = "54405"
FACTS = "SELECT version(), timezone(), groupArray(name), groupArray(value), groupArray(readonly) FROM system.settings"

# What this client sends by itself, where the user hasn't said otherwise and the server lets it.
OWN_SETTINGS = {
    "date_time_input_format": "best_effort",
    "cast_string_to_dynamic_use_inference": "1",
    "cancel_http_readonly_queries_on_client_close": "1",
}
OWN_READ_SETTINGS = {"output_format_native_use_flattened_dynamic_and_json_serialization": "1"}
MIN_PROGRESS_MS, MAX_PROGRESS_MS = 10_000, 120_000


class Start(Inserts):
    """The part of the client that asks the server who it is."""

    _initial_settings: dict[str, Any]
    _session_id: str | None
    _autogenerate_session_id: bool
    _options: ClientOptions
    _tz_source: str
    _dst_safe: bool
    _initialized: bool
    server_version: str | None
    protocol_version: int

    def _initialize(self) -> None:
        """Asks the server; afterwards everything is known that queries need."""
        if self._initialized:
            return
        if self._token_provider:
            self.set_access_token(self._new_token())
        version, zone_name, names, values, readonly = self._facts()
        self.server_version = version
        self.server_settings = {
            name: SettingDef(name, value, flag) for name, value, flag in zip(names, values, readonly, strict=True)
        }
        self._take_server_zone(zone_name)
        self._take_settings()
        self._initialized = True

    def _facts(self) -> tuple[Any, ...]:
        context = QueryContext(FACTS, query_formats={"String": "string"})
        self._targets.read_params = {"client_protocol_version": PROTOCOL_VERSION}
        self._targets.changed()
        result = self._query_with_context(context, use_database=False)
        if len(result.result_rows) != 1 or len(result.result_rows[0]) != 5:
            raise OperationalError(f"ClickHouse said something else than its version and zone: {result.result_rows!r}")
        return tuple(result.result_rows[0])

    def _take_server_zone(self, name: str) -> None:
        zone = find_zone(name)
        if zone is None:
            logger.warning("the server's time zone %s isn't known on this machine, UTC is used instead", name)
        self.server_tz = zone or timezone.utc
        self._dst_safe = is_dst_safe(self.server_tz)
        self._apply_tz_source()
        if not self._apply_server_tz and not is_dst_safe(local_timezone()):
            logger.warning(
                "local timezone %s may return unexpected times around a change of its offset", local_timezone()
            )

    def _apply_tz_source(self) -> None:
        self._apply_server_tz = self._dst_safe if self._tz_source == "auto" else self._tz_source == "server"

    def _take_settings(self) -> None:
        """The settings that every request of this client carries."""
        self._own_settings = {}
        for name, value in OWN_SETTINGS.items():
            if name not in self._initial_settings and self._may_set(name):
                self._own_settings[name] = value
        self._own_settings.update(self._keep_alive_settings())
        self._targets.settings.update(self._own_settings)
        for name, value in self._initial_settings.items():
            text = checked(name, value, self.server_settings, self._targets.settings)
            if text is not None:
                self._targets.settings[name] = text
        if self._session_id:
            self._targets.settings["session_id"] = self._session_id
        elif self._autogenerate_session_id and "session_id" not in self._targets.settings:
            self._targets.settings["session_id"] = new_id()
        for name, value in OWN_READ_SETTINGS.items():
            if self._may_set(name) and name not in self._targets.settings:
                self._targets.read_params[name] = value
                self._own_settings[name] = value
        if self._options.encoding and self._may_set("enable_http_compression"):
            self._targets.read_params["enable_http_compression"] = "1"
        self.protocol_version = int(PROTOCOL_VERSION) if common.get_setting("use_protocol_version") else 0
        self._targets.changed()

    def _may_set(self, name: str) -> bool:
        return self._setting_status(name).is_writable and name not in self._refused_settings

    def _keep_alive_settings(self) -> dict[str, str]:
        """Progress in the head keeps a silent connection alive while a query takes its time."""
        names = ("send_progress_in_http_headers", "http_headers_progress_interval_ms")
        if any(name in self._initial_settings or not self._may_set(name) for name in names):
            return {}
        patience_ms = int(((self._options.send_receive_timeout or 300) - 5) * 1000)
        interval_ms = min(MAX_PROGRESS_MS, max(MIN_PROGRESS_MS, patience_ms))
        return {names[0]: "1", names[1]: str(interval_ms)}

    def _setting_status(self, key: str) -> SettingStatus:
        return setting_status(self.server_settings, key)

    server_tz: tzinfo
