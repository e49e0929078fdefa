package diskbuffer_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	windrow "windrow.dev/go"
	"windrow.dev/go/diskbuffer"
)

type benchRow struct {
	ID       int32  `ch:"id"`
	UUID     string `ch:"uuid"`
	InsertTS string `ch:"insert_ts"`
}

// nowhere stores everything at once.
type nowhere struct{}

func (nowhere) Describe(_ context.Context, table string, columns []string) (windrow.Table, error) {
	destination := windrow.Destination{Table: table, Columns: columns, Types: []string{"Int32", "String", "String"}}
	return windrow.Table{Destination: destination, Deduplicates: true}, nil
}

func (nowhere) Insert(context.Context, windrow.Batch) error { return nil }

func BenchmarkDisk(b *testing.B) {
	for name, sync := range map[string]diskbuffer.Sync{
		"Never": {}, "Interval10ms": diskbuffer.SyncInterval(10 * time.Millisecond), "Always": diskbuffer.SyncAlways(),
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, diskbuffer.Options{Sync: sync}) })
	}
}

// benchmark counts until all rows are stored, so until they were synced where they have to be, and read back.
func benchmark(b *testing.B, options diskbuffer.Options) {
	buffer := diskbuffer.At(filepath.Join(b.TempDir(), "buffer"), options)
	writer, err := windrow.Open[benchRow](b.Context(), nowhere{}, "t",
		windrow.Options{Logger: slog.New(slog.DiscardHandler), Buffer: buffer, MaxBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	row := benchRow{1, "00000000-0000-4000-8000-000000000000", "02 Jan 06 15:04 MST"}
	before := mallocs()
	for b.Loop() {
		row.ID++
		err := writer.Write(row)
		if err == windrow.ErrFull {
			err = writer.WriteBlocking(context.Background(), row)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	took := b.Elapsed()
	if err := writer.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/took.Seconds(), "rows/s")
	b.ReportMetric(float64(mallocs()-before)/float64(b.N), "allocs/row")
	if stored := writer.Statistics().RowsStored; stored != uint64(b.N) {
		b.Fatalf("%d of %d rows are stored", stored, b.N)
	}
}

func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}
