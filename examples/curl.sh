#!/bin/sh
# The quick start, against a gateway that runs: sh examples/curl.sh [http://user:password@host:8123]
set -eu
url=${1:-http://127.0.0.1:8123}

# Sends a statement; ClickHouse's answer, or its error, is printed.
say() { printf '\n> %s\n' "$1"; }
query() { say "$1"; curl -sS "$url" --data-binary "$1"; }

# Sends rows for an INSERT that stands in the URL; $2 is further settings.
insert() {
  say "INSERT INTO windrow_example FORMAT JSONEachRow  $1  ${2:-}"
  curl -sS "$url/?query=INSERT+INTO+windrow_example+FORMAT+JSONEachRow${2:+&$2}" --data-binary "$1" -w 'HTTP %{http_code}\n'
}

query 'CREATE OR REPLACE TABLE windrow_example (a UInt64, at DateTime DEFAULT now()) ORDER BY a'

# Answered when the row is stored.
insert '{"a":1}'

# Answered when it is on disk; stored a moment later, or right away on command.
insert '{"a":2}' wait_for_async_insert=0
query 'SYSTEM FLUSH ASYNC INSERT QUEUE windrow_example'

# Settings may stand in the statement.
query 'INSERT INTO windrow_example (a) SETTINGS async_insert_busy_timeout_ms=1000 VALUES (3), (4)'

# A bad row is its sender's error, in ClickHouse's words: 400. Nothing of this insert is stored.
insert '{"a":5}{"a":"x"}'

query 'SELECT a FROM windrow_example ORDER BY a'
query "SELECT rows, status, left(exception, 60) FROM system.asynchronous_insert_log WHERE table = 'windrow_example' ORDER BY event_time_microseconds DESC LIMIT 4"
query 'DROP TABLE windrow_example'
