"""The library of ClickHouse that windrow-server starts: `libchdb.so`, in this folder."""
