"""Settings of this package as a whole: what holds for every client of the process.

>>> from windrow import common
>>> common.get_setting("invalid_setting_action")
'error'
>>> common.set_setting("product_name", "nightly-report")
>>> common.set_setting("product_name", "")
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windrow._core import __version__
from windrow._shared.errors import ProgrammingError

__all__ = ["CommonSetting", "build_client_name", "format_error", "get_setting", "set_setting", "version"]


@dataclass
class CommonSetting:
    """One setting: `options` are the allowed values (none: any), `value` is None while the default holds."""

    name: str
    options: Sequence[Any]
    default: Any
    value: Any | None = None


_settings: dict[str, CommonSetting] = {
    setting.name: setting
    for setting in (
        CommonSetting("autogenerate_session_id", (True, False), True),
        CommonSetting("autogenerate_query_id", (True, False), True),
        CommonSetting("dict_parameter_format", ("json", "map"), "json"),
        CommonSetting("http_buffer_size", (), 10 * 1024 * 1024),
        CommonSetting("invalid_setting_action", ("send", "drop", "error"), "error"),
        CommonSetting("max_connection_age", (), 10 * 60),
        CommonSetting("max_error_size", (), 1024),
        CommonSetting("naive_datetime_binding", ("wall", "legacy"), "wall"),
        CommonSetting("naive_datetime_insert", ("local", "server"), "local"),
        CommonSetting("native_codec", ("python", "rust", "rust_strict"), "rust"),
        CommonSetting("product_name", (), ""),
        CommonSetting("readonly", (0, 1), 0),
        CommonSetting("send_integration_tags", (True, False), True),
        CommonSetting("send_os_user", (True, False), True),
        CommonSetting("use_protocol_version", (True, False), True),
    )
}


def version() -> str:
    """The version of this package."""
    return __version__


def get_setting(name: str) -> Any:
    """The value that holds now; ProgrammingError for a name that isn't known."""
    setting = _known(name)
    return setting.default if setting.value is None else setting.value


def set_setting(name: str, value: Any) -> None:
    """Sets a value for all clients; ProgrammingError for an unknown name or a value that isn't allowed."""
    setting = _known(name)
    allowed = setting.options
    if allowed and value not in allowed:
        raise ProgrammingError(f"{name} can't be {value!r}: it is one of {', '.join(map(repr, allowed))}")
    setting.value = None if value == setting.default else value


def _known(name: str) -> CommonSetting:
    setting = _settings.get(name)
    if setting is None:
        raise ProgrammingError(f"There is no setting {name!r} of this package: it has {', '.join(sorted(_settings))}")
    return setting


def format_error(message: str) -> str:
    """The message, cut to `max_error_size` characters (0: not cut)."""
    limit = get_setting("max_error_size")
    return message[:limit] if limit else message


def build_client_name(client_name: str | None, mode: str = "sync") -> str:
    """The User-Agent, which ClickHouse keeps in system.query_log as http_user_agent."""
    words = [word.strip() for word in (client_name, get_setting("product_name")) if word and word.strip()]
    details = [f"lv:py/{sys.version.split(' ', maxsplit=1)[0]}", f"mode:{mode}", f"os:{sys.platform}"]
    if get_setting("send_os_user"):
        try:
            details.append(f"os_user:{getpass.getuser()}")
        except Exception:  # noqa: BLE001 - no user to name: a container without /etc/passwd raises what it likes
            pass
    words.append(f"windrow/{__version__} ({'; '.join(details)})")
    return " ".join(words).encode("ascii", "ignore").decode()
