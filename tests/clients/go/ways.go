package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// small is a row of the table that every way of inserting fills.
type small struct {
	ID    uint64            `ch:"id"`
	S     string            `ch:"s"`
	Maybe *int32            `ch:"maybe"`
	Kind  string            `ch:"kind"`
	At    time.Time         `ch:"at"`
	Tags  []string          `ch:"tags"`
	Notes map[string]string `ch:"notes"`
}

const (
	smallColumns = `(id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), at DateTime64(3, 'UTC'),
		tags Array(String), notes Map(LowCardinality(String), String))`
	smallRows = 10
)

func smallRow(n int) small {
	number := int32(100 - n)
	row := small{
		ID: uint64(n), S: fmt.Sprintf("text %d ‘quoted’ \\ \t \", it's\n", n), Kind: fmt.Sprintf("kind %d", n%3),
		At: time.Date(2024, 2, 29, 12, 34, 56, 789e6, time.UTC), Tags: []string{}, Notes: map[string]string{"n": fmt.Sprint(n)},
	}
	if n%2 == 0 {
		row.Maybe = &number
	}
	for tag := range n % 4 {
		row.Tags = append(row.Tags, fmt.Sprintf("tag %d", tag))
	}
	return row
}

// stored compares the rows; what was not waited for shows up soon.
func stored(ctx context.Context, conn driver.Conn, table string) error {
	expected := []small{}
	for n := range smallRows {
		expected = append(expected, smallRow(n))
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		got := []small{}
		if err := conn.Select(ctx, &got, "SELECT * FROM "+table+" ORDER BY id"); err != nil {
			return err
		}
		if len(got) >= smallRows || time.Now().After(deadline) {
			return equal(got, expected)
		}
	}
}

// way runs one way to insert into a table of its own, and says how many inserts it takes.
func way(ctx context.Context, conn driver.Conn, table string, inserts int, insert func(table string) error) {
	sent[table] += inserts
	run("insert "+table, func() error {
		if err := conn.Exec(ctx, "CREATE TABLE "+table+" "+smallColumns+" ENGINE = MergeTree ORDER BY id"); err != nil {
			return err
		}
		if err := insert(table); err != nil {
			return err
		}
		return stored(ctx, conn, table)
	})
}

func sendBatch(ctx context.Context, conn driver.Conn, table string) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+table)
	if err != nil {
		return err
	}
	for n := range smallRows {
		row := smallRow(n)
		if err := batch.AppendStruct(&row); err != nil {
			return err
		}
	}
	return batch.Send()
}

func waysToInsert(ctx context.Context, conn driver.Conn) {
	batch := func(ctx context.Context) func(string) error {
		return func(table string) error { return sendBatch(ctx, conn, table) }
	}
	with := func(settings clickhouse.Settings) context.Context {
		return clickhouse.Context(ctx, clickhouse.WithSettings(settings))
	}
	way(ctx, conn, "batch", 1, batch(ctx))
	way(ctx, conn, "batch_waiting", 1, batch(with(clickhouse.Settings{"async_insert": 1, "wait_for_async_insert": 1})))
	way(ctx, conn, "batch_not_waiting", 1, batch(with(clickhouse.Settings{"async_insert": 1, "wait_for_async_insert": 0})))
	way(ctx, conn, "batch_with_async", 1, batch(clickhouse.Context(ctx, clickhouse.WithAsync(true))))
	way(ctx, conn, "batch_pinned_off", 1, batch(with(clickhouse.Settings{"async_insert": 0})))
	for name, method := range map[string]clickhouse.CompressionMethod{
		"lz4": clickhouse.CompressionLZ4, "lz4hc": clickhouse.CompressionLZ4HC, "zstd": clickhouse.CompressionZSTD,
		"gzip": clickhouse.CompressionGZIP, "deflate": clickhouse.CompressionDeflate, "br": clickhouse.CompressionBrotli,
		"none": clickhouse.CompressionNone,
	} {
		if native && !speaksNatively(method) {
			continue
		}
		way(ctx, conn, "batch_"+name, 1, func(table string) error {
			packed := open(&clickhouse.Compression{Method: method, Level: 3})
			defer packed.Close()
			return sendBatch(ctx, packed, table)
		})
	}
	sent["statements"] = smallRows
	run("insert statements", func() error { return plainStatements(ctx, conn) })
	way(ctx, conn, "statements_with_map", smallRows, func(table string) error { return sendStatements(ctx, conn, table) })
	formats := []string{
		"JSONEachRow", "JSONCompactEachRow", "CSV", "CSVWithNames", "TSV", "Values", "RowBinary", "RowBinaryWithNamesAndTypes",
		"MsgPack", "Parquet", "Arrow",
	}
	if native {
		// The driver sends texts of other formats over HTTP alone.
		formats = nil
	}
	for _, format := range formats {
		way(ctx, conn, "format_"+strings.ToLower(format), 1, func(table string) error { return sendFormat(ctx, conn, table, format) })
	}
	refusals(ctx, conn)
}

// sendStatements lets the driver inline the values of each row into a text, which is what it calls an asynchronous insert.
// It writes a map as a call of the function map, which only ClickHouse can read.
func sendStatements(ctx context.Context, conn driver.Conn, table string) error {
	for n := range smallRows {
		row := smallRow(n)
		waiting := clickhouse.Context(ctx, clickhouse.WithAsync(true))
		values := "INSERT INTO " + table + " (id, s, maybe, kind, at, tags, notes) VALUES (?, ?, ?, ?, '2024-02-29 12:34:56.789', ?, ?)"
		if err := conn.Exec(waiting, values, row.ID, row.S, row.Maybe, row.Kind, row.Tags, row.Notes); err != nil {
			return err
		}
	}
	return nil
}

func plainStatements(ctx context.Context, conn driver.Conn) error {
	if err := conn.Exec(ctx, "CREATE TABLE statements (id UInt64, s String, maybe Nullable(Int32), tags Array(String)) ENGINE = MergeTree ORDER BY id"); err != nil {
		return err
	}
	var expected, got []small
	for n := range smallRows {
		row := smallRow(n)
		waiting := clickhouse.Context(ctx, clickhouse.WithAsync(true))
		if err := conn.Exec(waiting, "INSERT INTO statements VALUES (?, ?, ?, ?)", row.ID, row.S, row.Maybe, row.Tags); err != nil {
			return err
		}
		expected = append(expected, small{ID: row.ID, S: row.S, Maybe: row.Maybe, Tags: row.Tags})
	}
	if err := conn.Select(ctx, &got, "SELECT id, s, maybe, tags FROM statements ORDER BY id"); err != nil {
		return err
	}
	return equal(got, expected)
}

// sendFormat streams the rows of another table as ClickHouse writes them. (Native is not among them: for this driver ClickHouse writes
// it with block headers, which it does not read back.)
func sendFormat(ctx context.Context, conn driver.Conn, table, format string) error {
	rows, err := conn.QueryFormat(ctx, format, "SELECT * FROM batch ORDER BY id")
	if err != nil {
		return err
	}
	defer rows.Close()
	return conn.InsertFormat(ctx, format, "INSERT INTO "+table, rows)
}

// speaksNatively is whether the native protocol has this compression.
func speaksNatively(method clickhouse.CompressionMethod) bool {
	return method == clickhouse.CompressionLZ4 || method == clickhouse.CompressionLZ4HC ||
		method == clickhouse.CompressionZSTD || method == clickhouse.CompressionNone
}

func refusals(ctx context.Context, conn driver.Conn) {
	refused := func(table string, code int32, insert func() error) {
		sent[table]++
		run(fmt.Sprintf("%s is %d", table, code), func() error {
			create := "CREATE TABLE " + table + " (id UInt64, CONSTRAINT few CHECK id < 5) ENGINE = MergeTree ORDER BY id"
			if err := conn.Exec(ctx, create); err != nil {
				return err
			}
			if err := fails(insert(), code); err != nil {
				return err
			}
			var count uint64
			if err := conn.QueryRow(ctx, "SELECT count() FROM "+table).Scan(&count); err != nil {
				return err
			}
			return equal(count, uint64(0))
		})
	}
	if !native {
		formatRefusals(ctx, conn, refused)
	}
	refused("checked_batch", 469, func() error {
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO checked_batch")
		if err != nil {
			return err
		}
		if err := batch.Append(uint64(7)); err != nil {
			return err
		}
		return batch.Send()
	})
}

func formatRefusals(ctx context.Context, conn driver.Conn, refused func(string, int32, func() error)) {
	refused("bad_json", 27, func() error {
		return conn.InsertFormat(ctx, "JSONEachRow", "INSERT INTO bad_json", strings.NewReader(`{"id": "x"}`))
	})
	refused("checked_json", 469, func() error {
		return conn.InsertFormat(ctx, "JSONEachRow", "INSERT INTO checked_json", strings.NewReader(`{"id": 7}`))
	})
}
