"""What the tests of the Python package stand on. The package continues in `tests/harness`: one name for both folders."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
