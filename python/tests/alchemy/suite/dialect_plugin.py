"""SQLAlchemy's own plugin for pytest, told of the dialect."""

from sqlalchemy.dialects import registry

for name in ("windrow", "windrow.http"):
    registry.register(name, "windrow.sqlalchemy", "WindrowDialect")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
