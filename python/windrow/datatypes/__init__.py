"""ClickHouse's types as Python programs see them: `format` sets how values are read and written, `registry` finds types."""
