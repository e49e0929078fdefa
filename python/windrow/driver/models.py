"""What the server says of its settings."""

from windrow._shared.settings import SettingDef, SettingStatus, setting_status

__all__ = ["SettingDef", "SettingStatus", "setting_status"]
