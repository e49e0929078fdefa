"""The exceptions; see windrow.exceptions."""

from windrow.exceptions import *  # noqa: F403 - the same ones under this name
