// Command program writes rows until it is killed, and says on its standard output how many rows the calls had
// that have returned: a number of eight bytes for each call. Told to drain, it stores what killed ones have
// left, and ends.
package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	windrow "windrow.dev/go"
	"windrow.dev/go/diskbuffer"
	"windrow.dev/go/redisbuffer"
)

type arguments struct {
	Address string `json:"address"`
	// Buffer is redis://..., disk:folder or memory.
	Buffer string `json:"buffer"`
	Sync   bool   `json:"sync"`
	Round  uint32 `json:"round"`
	Drain  bool   `json:"drain"`
	// IntervalMS is how long a row waits for others: 10 ms if it is 0.
	IntervalMS int64 `json:"interval_ms"`
	// BatchRows is 100 if it is 0.
	BatchRows int `json:"batch_rows"`
	// Rows ends it by itself after so many, if it is not 0.
	Rows uint64 `json:"rows"`
	// CallRows is how many rows a call has at most: 1 if it is 0.
	CallRows int `json:"call_rows"`
}

type row struct {
	Round uint32 `ch:"round"`
	N     uint64 `ch:"n"`
	Text  string `ch:"text"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var given arguments
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		return err
	}
	store, err := windrow.HTTP(given.Address)
	if err != nil {
		return err
	}
	ctx := context.Background()
	writer, err := windrow.Open[row](ctx, store, "t", given.options())
	if err != nil {
		return err
	}
	if !given.Drain {
		if err := write(ctx, writer, given); err != nil {
			return err
		}
	}
	if err := writer.Close(ctx); err != nil {
		return err
	}
	for failed := range writer.Errors() {
		return failed
	}
	return nil
}

func (a arguments) options() windrow.Options {
	options := windrow.Options{
		BatchRows: cmp.Or(a.BatchRows, 100), FlushInterval: 10 * time.Millisecond,
		Retry: windrow.Backoff{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond},
	}
	if a.IntervalMS > 0 {
		options.FlushInterval = time.Duration(a.IntervalMS) * time.Millisecond
	}
	folder, isDisk := strings.CutPrefix(a.Buffer, "disk:")
	if a.Buffer == "memory" {
		return options
	}
	if !isDisk {
		options.Buffer = redisbuffer.At(a.Buffer)
		return options
	}
	sync := diskbuffer.SyncNever()
	if a.Sync {
		sync = diskbuffer.SyncAlways()
	}
	options.Buffer = diskbuffer.At(folder, diskbuffer.Options{Sync: sync, SegmentBytes: 64 << 10})
	return options
}

func write(ctx context.Context, writer *windrow.Writer[row], given arguments) error {
	var said [8]byte
	sizes := rand.New(rand.NewPCG(uint64(given.Round), 0))
	for n := uint64(0); given.Rows == 0 || n < given.Rows; {
		var rows []row
		for range 1 + sizes.IntN(max(given.CallRows, 1)) {
			rows = append(rows, row{given.Round, n, strings.Repeat("x", int(n%100))})
			n++
		}
		if err := writer.WriteBlocking(ctx, rows...); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(said[:], n)
		if _, err := os.Stdout.Write(said[:]); err != nil {
			return err
		}
	}
	return writer.Flush(ctx)
}
