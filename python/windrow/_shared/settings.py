"""Which settings are sent: ClickHouse's own list says which exist and which may be changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from windrow import common
from windrow._shared.errors import ProgrammingError
from windrow._shared.literals import setting_literal

logger = logging.getLogger("windrow.settings")

# Names of the HTTP interface that aren't settings, but may be given as if they were.
TRANSPORT_SETTINGS = frozenset(
    (
        "database buffer_size session_id compress decompress session_timeout session_check query_id quota_key "
        "wait_end_of_query client_protocol_version role"
    ).split()
)
# Settings that are left out in silence where the server doesn't have them or doesn't let them be changed.
OPTIONAL_SETTINGS = frozenset(
    ("send_progress_in_http_headers", "http_headers_progress_interval_ms", "enable_http_compression")
)
# Names by which the HTTP interface means something else: as settings they would corrupt the request.
RESERVED_NAMES = frozenset(("query", "user", "password", "default_format", "stacktrace", "close_session"))
RESERVED_PREFIX = "param_"


class SettingDef(NamedTuple):
    """One line of system.settings, as this user sees it."""

    name: str
    value: str
    readonly: int


class SettingStatus(NamedTuple):
    """What is known of a setting at the server."""

    is_set: bool
    is_writable: bool


def setting_status(server_settings: Mapping[str, SettingDef], name: str) -> SettingStatus:
    """Whether the setting has a value other than 0 at the server, and whether this user may change it."""
    known = server_settings.get(name)
    return SettingStatus(known.value != "0", known.readonly != 1) if known else SettingStatus(False, False)


def checked(name: str, value: Any, server: Mapping[str, SettingDef], of_client: Mapping[str, str]) -> str | None:
    """The text to send for a setting, or None if it isn't sent. ProgrammingError if it may not be changed.

    What happens to a setting that the server doesn't let be changed is said by the common setting
    `invalid_setting_action`: "error", "send" or "drop". A setting that the server doesn't list is sent, since it may be
    one of the user's own; with "drop" it isn't.
    """
    text = setting_literal(value)
    if name in TRANSPORT_SETTINGS:
        return text
    known = server.get(name)
    action = common.get_setting("invalid_setting_action")
    if known is None:
        return _unlisted(name, text, action)
    if known.value == text and (known.readonly or of_client.get(name) == text):
        return None  # nothing would change
    if not known.readonly:
        return text
    if name in OPTIONAL_SETTINGS:
        return None
    if action == "send":
        logger.warning("the setting %s is sent although this user may not change it", name)
        return text
    if action == "drop":
        logger.warning("the setting %s is left out: this user may not change it", name)
        return None
    raise ProgrammingError(
        f"This user may not change the setting {name}: leave it out, or set invalid_setting_action to 'drop'"
    )


def _unlisted(name: str, text: str, action: str) -> str | None:
    if name in OPTIONAL_SETTINGS:
        return None
    if name in RESERVED_NAMES or name.startswith(RESERVED_PREFIX):
        raise ProgrammingError(
            f"{name} is not a setting but a word of the HTTP interface, which this client sends itself: leave it out"
        )
    if action == "drop":
        logger.warning("the setting %s is left out: this server has none of that name", name)
        return None
    return text


def all_checked(
    settings: Mapping[str, Any] | None, server: Mapping[str, SettingDef], of_client: Mapping[str, str]
) -> dict[str, str]:
    """The settings of one call, as they are sent."""
    sent: dict[str, str] = {}
    for name, value in (settings or {}).items():
        text = checked(name, value, server, of_client)
        if text is not None:
            sent[name] = text
    return sent
