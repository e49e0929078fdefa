"""External data of queries."""

from windrow._shared.external import ExternalData, ExternalFile

__all__ = ["ExternalData", "ExternalFile"]
