package windrow

import (
	"context"
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

func BenchmarkMemory(b *testing.B) {
	writer, err := Open[benchRow](b.Context(), nowhere{}, "t", Options{Logger: quiet(), MaxBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	row := benchRow{1, "00000000-0000-4000-8000-000000000000", "02 Jan 06 15:04 MST"}
	b.ReportAllocs()
	for b.Loop() {
		row.ID++
		if err := writer.Write(row); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	if err := writer.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
