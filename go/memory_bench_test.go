package windrow

import (
	"context"
	"fmt"
	"runtime"
	"testing"
)

type benchRow struct {
	ID       int32  `ch:"id"`
	UUID     string `ch:"uuid"`
	InsertTS string `ch:"insert_ts"`
}

// nowhere stores everything at once.
type nowhere struct{}

func (nowhere) Describe(_ context.Context, table string, columns []string) (Table, error) {
	return Table{Destination: Destination{Table: table, Columns: columns, Types: []string{"Int32", "String", "String"}}}, nil
}

func (nowhere) Insert(context.Context, Batch) error { return nil }

// Rows are there before the first is written, as objects or as lists of values: what is counted is what a writer
// does with them.
func BenchmarkMemory(b *testing.B) {
	objects, lists := make([]benchRow, benchRows), make([]Row, benchRows)
	for n := range benchRows {
		objects[n] = benchRow{int32(n), fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "02 Jan 06 15:04 MST"}
		lists[n] = Row{objects[n].ID, objects[n].UUID, objects[n].InsertTS}
	}
	b.Run("Struct", func(b *testing.B) { benchmarkMemory(b, objects) })
	b.Run("Row", func(b *testing.B) { benchmarkMemory(b, lists) })
}

const benchRows = 5000

func benchmarkMemory[T any](b *testing.B, rows []T) {
	options := Options{Logger: quiet(), MaxBytes: 1 << 30, Columns: []string{"id", "uuid", "insert_ts"}}
	writer, err := Open[T](b.Context(), nowhere{}, "t", options)
	if err != nil {
		b.Fatal(err)
	}
	before, n := mallocs(), 0
	for b.Loop() {
		if err := writer.Write(rows[n%benchRows]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	if err := writer.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(mallocs()-before)/float64(b.N), "allocs/row")
	equal(b, writer.Statistics().RowsStored, uint64(b.N))
}

// mallocs counts allocations. What the package testing reports of them are whole numbers.
func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}
