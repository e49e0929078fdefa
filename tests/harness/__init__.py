"""What the whole-system tests stand on: processes under test, a raw HTTP client, comparison of answers. The package continues
in `python/tests/harness`, whichever of the two folders is found first."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
