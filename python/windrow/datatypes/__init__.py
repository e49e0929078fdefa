"""ClickHouse's types: `format` sets how values are read and written, `registry` finds types by their names."""
