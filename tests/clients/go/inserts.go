package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

// row has a field for every common type.
type row struct {
	ID         uint64            `ch:"id"`
	I8         int8              `ch:"i8"`
	F32        float32           `ch:"f32"`
	F64        float64           `ch:"f64"`
	Flag       bool              `ch:"flag"`
	S          string            `ch:"s"`
	LC         string            `ch:"lc"`
	Maybe      *int32            `ch:"maybe"`
	Numbers    []int32           `ch:"numbers"`
	Texts      []*string         `ch:"texts"`
	Attributes map[string]uint64 `ch:"attributes"`
	Day        time.Time         `ch:"day"`
	Moment     time.Time         `ch:"moment"`
	Instant    time.Time         `ch:"instant"`
	Price      decimal.Decimal   `ch:"price"`
	Key        uuid.UUID         `ch:"key"`
	IP4        net.IP            `ch:"ip4"`
	Colour     string            `ch:"colour"`
}

const createKinds = `CREATE TABLE go_kinds (id UInt64, i8 Int8, f32 Float32, f64 Float64, flag Bool, s String,
	lc LowCardinality(String), maybe Nullable(Int32), numbers Array(Int32), texts Array(Nullable(String)),
	attributes Map(String, UInt64), day Date, moment DateTime('UTC'), instant DateTime64(3, 'UTC'), price Decimal(18, 4),
	key UUID, ip4 IPv4, colour Enum8('red' = 1, 'green' = 2)) ENGINE = MergeTree ORDER BY id`

func rowNumber(n int) row {
	some, text := int32(n), "a"
	maybe := &some
	if n%2 == 1 {
		maybe = nil
	}
	return row{
		ID: uint64(n), I8: int8(-n), F32: float32(n) + 0.5, F64: float64(n) / 3, Flag: n%2 == 0,
		S: "‘quoted’ \\ \t \"", LC: fmt.Sprintf("kind %d", n%3), Maybe: maybe, Numbers: []int32{int32(n), 7},
		Texts: []*string{&text, nil}, Attributes: map[string]uint64{"a": uint64(n)},
		Day:     time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		Moment:  time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC),
		Instant: time.Date(2024, 2, 29, 12, 34, 56, 789e6, time.UTC),
		Price:   decimal.New(int64(n)*10000+1234, -4), Key: uuid.MustParse("00000000-0000-0000-0000-00000000000a"),
		IP4: net.IPv4(10, 0, 0, byte(n)).To4(), Colour: "green",
	}
}

func insertChecks(ctx context.Context, conn driver.Conn) {
	run("all types in a batch of structs", func() error { return allTypes(ctx, conn) })
	run("create table", func() error {
		return conn.Exec(ctx, "CREATE TABLE go_one (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
	})
	run("batch by values", func() error { return appendBatch(ctx, conn, 0, 100) })
	run("batch flushed in the middle", func() error { return flushedBatch(ctx, conn) })
	run("columnar batch", func() error { return columnarBatch(ctx, conn) })
	run("aborted batch inserts nothing", func() error { return abortedBatch(ctx, conn) })
	run("one row many times, waiting", func() error { return manyAsync(ctx, conn, true) })
	run("one row many times, without waiting", func() error { return manyAsync(ctx, conn, false) })
	run("forty at once, waiting", func() error { return atOnce(conn) })
	run("insert by statement", func() error { return conn.Exec(ctx, "INSERT INTO go_one VALUES (5000, 'a'), (5001, 'b')") })
	run("insert by statement with arguments", func() error {
		return conn.Exec(ctx, "INSERT INTO go_one VALUES (?, ?)", 5002, "it's")
	})
	run("insert from a select", func() error {
		return conn.Exec(ctx, "INSERT INTO go_one SELECT 6000 + number, 'select' FROM numbers(5)")
	})
	overHTTP("insert in a given format", func() error {
		rows := strings.NewReader("{\"id\": 7000, \"s\": \"json\"}\n{\"id\": 7001, \"s\": \"json\"}\n")
		return conn.InsertFormat(ctx, "JSONEachRow", "INSERT INTO go_one", rows)
	})
	run("rows are there", func() error { return rowsAreThere(ctx, conn) })
	for _, method := range []clickhouse.CompressionMethod{
		clickhouse.CompressionLZ4, clickhouse.CompressionZSTD, clickhouse.CompressionGZIP, clickhouse.CompressionDeflate, clickhouse.CompressionBrotli,
	} {
		if native && !speaksNatively(method) {
			continue
		}
		run("compression "+method.String(), func() error { return compressed(ctx, method) })
	}
	run("unknown table in a batch is 60", func() error {
		_, err := conn.PrepareBatch(ctx, "INSERT INTO nowhere")
		return fails(err, 60)
	})
	overHTTP("bad row is an error", func() error {
		return fails(conn.InsertFormat(ctx, "JSONEachRow", "INSERT INTO go_one", strings.NewReader(`{"id": "x"}`)), 27)
	})
}

func allTypes(ctx context.Context, conn driver.Conn) error {
	if err := conn.Exec(ctx, createKinds); err != nil {
		return err
	}
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO go_kinds")
	if err != nil {
		return err
	}
	expected := []row{rowNumber(0), rowNumber(1), rowNumber(2)}
	for i := range expected {
		if err := batch.AppendStruct(&expected[i]); err != nil {
			return err
		}
	}
	if err := batch.Send(); err != nil {
		return err
	}
	var got []row
	if err := conn.Select(ctx, &got, "SELECT * FROM go_kinds ORDER BY id"); err != nil {
		return err
	}
	for i := range got {
		if !got[i].Price.Equal(expected[i].Price) {
			return fmt.Errorf("price %s became %s", expected[i].Price, got[i].Price)
		}
		got[i].Price, got[i].Day = expected[i].Price, got[i].Day.UTC()
	}
	return equal(got, expected)
}

func appendBatch(ctx context.Context, conn driver.Conn, first, count int) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO go_one (id, s)")
	if err != nil {
		return err
	}
	for n := first; n < first+count; n++ {
		if err := batch.Append(uint64(n), "batch"); err != nil {
			return err
		}
	}
	return batch.Send()
}

func flushedBatch(ctx context.Context, conn driver.Conn) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO go_one")
	if err != nil {
		return err
	}
	for n := 1000; n < 1010; n++ {
		if err := batch.Append(uint64(n), "flushed"); err != nil {
			return err
		}
		if n == 1004 {
			if err := batch.Flush(); err != nil {
				return err
			}
		}
	}
	return batch.Send()
}

func columnarBatch(ctx context.Context, conn driver.Conn) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO go_one")
	if err != nil {
		return err
	}
	if err := batch.Column(0).Append([]uint64{2000, 2001, 2002}); err != nil {
		return err
	}
	if err := batch.Column(1).Append([]string{"columnar", "columnar", "columnar"}); err != nil {
		return err
	}
	return batch.Send()
}

func abortedBatch(ctx context.Context, conn driver.Conn) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO go_one")
	if err != nil {
		return err
	}
	if err := batch.Append(uint64(9999), "aborted"); err != nil {
		return err
	}
	if err := batch.Abort(); err != nil {
		return err
	}
	return expectCount(ctx, conn, "s = 'aborted'", 0)
}

func manyAsync(ctx context.Context, conn driver.Conn, wait bool) error {
	for n := 0; n < 20; n++ {
		with := clickhouse.Context(ctx, clickhouse.WithAsync(wait))
		statement := fmt.Sprintf("INSERT INTO go_one VALUES (%d, 'async %v')", 3000+n, wait)
		if err := conn.Exec(with, statement); err != nil {
			return err
		}
	}
	if !wait {
		return nil
	}
	return expectCount(ctx, conn, "s = 'async true'", 20)
}

// atOnce has a connection per writer: the driver's pool is as small as its defaults.
func atOnce(conn driver.Conn) error {
	settings := options(nil)
	settings.MaxOpenConns, settings.MaxIdleConns = 40, 40
	wide, err := clickhouse.Open(settings)
	if err != nil {
		return err
	}
	defer wide.Close()
	failures := make(chan error, 40)
	for n := range 40 {
		go func() {
			ctx := clickhouse.Context(context.Background(), clickhouse.WithAsync(true))
			failures <- wide.Exec(ctx, fmt.Sprintf("INSERT INTO go_one VALUES (%d, 'at once')", 4000+n))
		}()
	}
	for range 40 {
		if err := <-failures; err != nil {
			return err
		}
	}
	return expectCount(context.Background(), conn, "s = 'at once'", 40)
}

func rowsAreThere(ctx context.Context, conn driver.Conn) error {
	expected := map[string]uint64{
		"s = 'batch'": 100, "s = 'flushed'": 10, "s = 'columnar'": 3, "id BETWEEN 5000 AND 5002": 3, "s = 'select'": 5,
	}
	if !native {
		expected["s = 'json'"] = 2
	}
	for condition, count := range expected {
		if err := expectCount(ctx, conn, condition, count); err != nil {
			return err
		}
	}
	return nil
}

func expectCount(ctx context.Context, conn driver.Conn, condition string, expected uint64) error {
	var count uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM go_one WHERE "+condition).Scan(&count); err != nil {
		return err
	}
	if count != expected {
		return fmt.Errorf("%s: %d rows, expected %d", condition, count, expected)
	}
	return nil
}

func compressed(ctx context.Context, method clickhouse.CompressionMethod) error {
	packed := open(&clickhouse.Compression{Method: method, Level: 3})
	defer packed.Close()
	batch, err := packed.PrepareBatch(ctx, "INSERT INTO go_one")
	if err != nil {
		return err
	}
	text := strings.Repeat("packed "+method.String(), 10)
	for n := range 1000 {
		if err := batch.Append(uint64(100000+n), text); err != nil {
			return err
		}
	}
	if err := batch.Send(); err != nil {
		return err
	}
	var got []struct {
		S string `ch:"s"`
	}
	if err := packed.Select(ctx, &got, "SELECT s FROM go_one WHERE s = $1", text); err != nil {
		return err
	}
	return equal(len(got), 1000)
}
