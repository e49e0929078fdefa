package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func readChecks(ctx context.Context, conn driver.Conn) {
	run("streamed read of 100k rows", func() error { return streamed(ctx, conn) })
	run("parameters", func() error { return parameters(ctx, conn) })
	run("positional arguments", func() error {
		var got string
		if err := conn.QueryRow(ctx, "SELECT concat(?, toString(?))", "it's ", 5).Scan(&got); err != nil {
			return err
		}
		return equal(got, "it's 5")
	})
	run("settings", func() error {
		var got uint64
		with := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 4321}))
		if err := conn.QueryRow(with, "SELECT toUInt64(getSetting('max_block_size'))").Scan(&got); err != nil {
			return err
		}
		return equal(got, uint64(4321))
	})
	run("session", func() error { return session(ctx) })
	run("query id", func() error {
		var got string
		with := clickhouse.Context(ctx, clickhouse.WithQueryID("go-query-1"))
		if err := conn.QueryRow(with, "SELECT queryID()").Scan(&got); err != nil {
			return err
		}
		return equal(got, "go-query-1")
	})
	overHTTP("result in a given format", func() error {
		stream, err := conn.QueryFormat(ctx, "CSV", "SELECT number, toString(number) FROM numbers(3)")
		if err != nil {
			return err
		}
		defer stream.Close()
		text, err := io.ReadAll(stream)
		if err != nil {
			return err
		}
		return equal(string(text), "0,\"0\"\n1,\"1\"\n2,\"2\"\n")
	})
	run("error in the middle of a result", func() error { return errorInTheMiddle(ctx, conn) })
	run("unknown table is 60", func() error { return fails(conn.Exec(ctx, "SELECT * FROM nowhere"), 60) })
	run("syntax error is 62", func() error { return fails(conn.Exec(ctx, "SELEC 1"), 62) })
	run("unknown setting is 115", func() error {
		with := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"no_such_setting": 1}))
		return fails(conn.Exec(with, "SELECT 1"), 115)
	})
	run("connection serves on after errors", func() error { return conn.Ping(ctx) })
}

func streamed(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.Query(ctx, "SELECT number, toString(number) FROM numbers(100000)")
	if err != nil {
		return err
	}
	defer rows.Close()
	var count, sum uint64
	for rows.Next() {
		var number uint64
		var text string
		if err := rows.Scan(&number, &text); err != nil {
			return err
		}
		count, sum = count+1, sum+number
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return equal([]uint64{count, sum}, []uint64{100000, 99999 * 100000 / 2})
}

func parameters(ctx context.Context, conn driver.Conn) error {
	with := clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"n": "41", "s": "it's", "list": "[1,2]"}))
	var n int64
	var s string
	var list []uint8
	row := conn.QueryRow(with, "SELECT {n:Int32} + 1, {s:String}, {list:Array(UInt8)}")
	if err := row.Scan(&n, &s, &list); err != nil {
		return err
	}
	return equal(fmt.Sprintln(n, s, list), "42 it's [1 2]\n")
}

func session(ctx context.Context) error {
	settings := options(nil)
	// A native connection is a session.
	if !native {
		settings.Settings = clickhouse.Settings{"session_id": "go-session-1"}
	}
	settings.MaxOpenConns = 1
	conn, err := clickhouse.Open(settings)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Exec(ctx, "CREATE TEMPORARY TABLE scratch (n UInt64)"); err != nil {
		return err
	}
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO scratch")
	if err != nil {
		return err
	}
	for _, n := range []uint64{1, 2, 3} {
		if err := batch.Append(n); err != nil {
			return err
		}
	}
	if err := batch.Send(); err != nil {
		return err
	}
	var sum uint64
	if err := conn.QueryRow(ctx, "SELECT sum(n) FROM scratch").Scan(&sum); err != nil {
		return err
	}
	return equal(sum, uint64(6))
}

func errorInTheMiddle(ctx context.Context, conn driver.Conn) error {
	with := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 1000, "max_threads": 1}))
	rows, err := conn.Query(with, "SELECT throwIf(number = 900000, 'too far'), number FROM numbers(1000000)")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	if rows.Err() == nil {
		return errors.New("no error came")
	}
	return nil
}

// databaseSQLChecks goes through Go's standard interface instead of the driver's own.
func databaseSQLChecks(ctx context.Context) {
	db := clickhouse.OpenDB(options(nil))
	defer db.Close()
	run("database/sql: ping", func() error { return db.PingContext(ctx) })
	run("database/sql: insert and read", func() error { return standardInsert(ctx, db) })
	run("database/sql: error code", func() error {
		_, err := db.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)")
		return fails(err, 60)
	})
}

func standardInsert(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "CREATE TABLE go_std (id UInt64, s String) ENGINE = MergeTree ORDER BY id"); err != nil {
		return err
	}
	transaction, err := db.Begin()
	if err != nil {
		return err
	}
	statement, err := transaction.PrepareContext(ctx, "INSERT INTO go_std")
	if err != nil {
		return err
	}
	for n := range 10 {
		if _, err := statement.ExecContext(ctx, uint64(n), "std"); err != nil {
			return err
		}
	}
	if err := transaction.Commit(); err != nil {
		return err
	}
	var count int
	if err := db.QueryRowContext(ctx, "SELECT count() FROM go_std WHERE s = 'std'").Scan(&count); err != nil {
		return err
	}
	return equal(count, 10)
}
