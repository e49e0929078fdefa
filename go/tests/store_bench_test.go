package tests

import (
	"context"
	"fmt"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	windrow "windrow.dev/go"
)

// benchRows is how many rows a batch of BenchmarkStore has: as a writer's by default.
const benchRows = 5000

// capturing keeps the last batch instead of storing it.
type capturing struct {
	nowhere
	batch windrow.Batch
}

func (c *capturing) Insert(_ context.Context, batch windrow.Batch) error {
	batch.Rows = batch.Rows.Clone()
	c.batch = batch
	return nil
}

// capture gives a batch as a writer makes it.
func capture(b *testing.B) windrow.Batch {
	kept := &capturing{}
	writer := open[benchRow](b, kept, "t", windrow.Options{BatchRows: benchRows})
	for n := range benchRows {
		row := benchRow{int32(n), fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "02 Jan 06 15:04 MST"}
		done(b, writer.Write(row))
	}
	done(b, writer.Close(context.Background()))
	return kept.batch
}

// BenchmarkStore sends batches of 5000 rows one after the other, over each way there is. It was the
// measurement by which the ways were chosen.
func BenchmarkStore(b *testing.B) {
	batch := capture(b)
	name := "go_bench_store"
	sql(b, "CREATE TABLE IF NOT EXISTS "+name+" (id Int32, uuid String, insert_ts String) ENGINE = Null")
	defer sql(b, "DROP TABLE "+name)
	for way, store := range map[string]windrow.Store{
		"HTTP": httpStore(b), "ChGo": nativeStore(b), "ClickHouseGo": driverStore(b),
	} {
		b.Run(way, func(b *testing.B) {
			described, err := store.Describe(b.Context(), name, nil)
			done(b, err)
			batch.Destination = &described.Destination
			for b.Loop() {
				batch.ID = windrow.NewBatchID()
				done(b, store.Insert(b.Context(), batch))
			}
			b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/benchRows/float64(b.N), "ns/row")
		})
	}
}

// driverStore sends the same rows by clickhouse-go, as columns of Go's values.
func driverStore(b *testing.B) windrow.Store {
	connection, err := clickhouse.Open(&clickhouse.Options{
		Addr: []string{environment(b, "CLICKHOUSE_HOST") + ":" + environment(b, "WINDROW_TEST_NATIVE_PORT")},
		Auth: clickhouse.Auth{Database: environment(b, "CLICKHOUSE_DATABASE"), Username: environment(b, "CLICKHOUSE_USER"),
			Password: environment(b, "CLICKHOUSE_PASSWORD")},
	})
	done(b, err)
	b.Cleanup(func() { _ = connection.Close() })
	return driverOnly{httpStore(b), connection}
}

type driverOnly struct {
	*windrow.HTTPStore
	connection driver.Conn
}

func (d driverOnly) Insert(ctx context.Context, batch windrow.Batch) error {
	prepared, err := d.connection.PrepareBatch(ctx, "INSERT INTO "+batch.Destination.QuotedTable()+batch.Destination.QuotedColumns())
	if err != nil {
		return err
	}
	var ids []int32
	var uuids, times []string
	for row := range batch.Rows.Each {
		ids = append(ids, int32(row[0])|int32(row[1])<<8|int32(row[2])<<16|int32(row[3])<<24)
		uuids = append(uuids, string(row[5:5+row[4]]))
		times = append(times, string(row[6+row[4]:]))
	}
	for index, column := range []any{ids, uuids, times} {
		if err := prepared.Column(index).Append(column); err != nil {
			return err
		}
	}
	return prepared.Send()
}
