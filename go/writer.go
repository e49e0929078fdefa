package windrow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"windrow.dev/go/internal/rowbinary"
)

// Row is a row as a list of values, in the order of the writer's columns.
type Row []any

// Writer gathers rows for one table. T is a struct with `ch` tags, or Row. All methods may be called from any
// goroutine.
type Writer[T any] struct {
	core    *core
	encoder *rowbinary.RowEncoder
	scratch sync.Pool
}

// scratch is where a row is encoded. The row is copied into it, since it would be moved to the heap
// otherwise: the encoder sees it through a pointer.
type scratch[T any] struct {
	row     T
	bytes   []byte
	lengths []uint32
}

// maxScratchBytes bounds what is kept for the next row: a large one doesn't hold its memory for ever.
const maxScratchBytes = 1 << 20

// Open makes a writer for a table, which may be named with its database, `database.table`. It asks the store
// for the table's columns, checks that rows fit them, and opens the buffer.
func Open[T any](ctx context.Context, store Store, table string, options Options) (*Writer[T], error) {
	options = options.withDefaults()
	columns := options.Columns
	if len(columns) == 0 {
		columns = rowbinary.ColumnsOf[T]()
	}
	described, err := store.Describe(ctx, table, columns)
	if err != nil {
		return nil, fmt.Errorf("windrow: the columns of %s: %w", table, err)
	}
	destination := &described.Destination
	encoder, err := rowbinary.NewRowEncoder[T](destination.Columns, destination.Types)
	if err != nil {
		return nil, fmt.Errorf("windrow: rows for %s: %w", table, err)
	}
	buffer, err := options.Buffer.OpenBuffer(destination, BatchLimits{Rows: options.BatchRows, Bytes: options.BatchBytes})
	if err != nil {
		return nil, fmt.Errorf("windrow: the buffer of %s: %w", table, err)
	}
	writer := &Writer[T]{core: newCore(buffer, store, destination, options), encoder: encoder}
	writer.scratch.New = func() any { return new(scratch[T]) }
	if !described.Deduplicates {
		writer.core.log.Warn("windrow: the table has no window of deduplication: a batch whose answer is lost may be stored " +
			"twice; see non_replicated_deduplication_window")
	}
	return writer, nil
}

// Write takes a row and never waits: it answers ErrFull when there is no room, ErrClosed, a *ValueError, or
// why the buffer failed, and then it has taken nothing. With a buffer in Redis, or on a disk that is synced
// always, the row is on its way there when Write returns; if it doesn't arrive, it comes back through Errors.
func (w *Writer[T]) Write(row T) error {
	scratch, err := w.encode(row)
	if err == nil {
		_, err = w.core.append(scratch.rows())
	}
	w.giveBack(scratch)
	return err
}

// TryWrite takes a row if there is room now, and says whether. The error is of other things than room.
func (w *Writer[T]) TryWrite(row T) (bool, error) {
	err := w.Write(row)
	if errors.Is(err, ErrFull) {
		return false, nil
	}
	return err == nil, err
}

// WriteRows takes all of the rows, or none, and never waits, like Write.
func (w *Writer[T]) WriteRows(rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	scratch, err := w.encode(rows...)
	if err == nil {
		_, err = w.core.append(scratch.rows())
	}
	w.giveBack(scratch)
	return err
}

// WriteBlocking takes all of the rows, waiting for room, and returns when the buffer's promise holds for
// them: on a disk that is synced always they are on the disk, in Redis they are confirmed. If ctx ends first,
// they may have been taken: then they are stored.
func (w *Writer[T]) WriteBlocking(ctx context.Context, rows ...T) error {
	if err := ctx.Err(); err != nil || len(rows) == 0 {
		return err
	}
	scratch, err := w.encode(rows...)
	if err == nil {
		err = w.core.appendBlocking(ctx, scratch.rows())
	}
	w.giveBack(scratch)
	return err
}

// Flush sends what waits, and returns when all rows that were taken before are stored, or have come back. It answers
// ErrClosed if the writer is closed first and rows stay in the buffer.
func (w *Writer[T]) Flush(ctx context.Context) error { return w.core.flush(ctx) }

// Close takes nothing more and stores what waits, until ctx ends. It answers a *CloseError if not all rows
// were known to be stored by then: those in memory come back through Errors, those in a buffer that survives
// stay there for the next writer. When it returns, nothing of the writer is running any more.
func (w *Writer[T]) Close(ctx context.Context) error { return w.core.close(ctx) }

// Errors gives rows that could not be stored. Nobody has to read it: the oldest errors give way to new ones.
// Close ends it.
func (w *Writer[T]) Errors() <-chan *WriteError { return w.core.errors.out }

// Statistics says what the writer has done, and what it holds.
func (w *Writer[T]) Statistics() Statistics { return w.core.statistics() }

// Destination says where rows go, and how they are encoded.
func (w *Writer[T]) Destination() *Destination { return w.core.destination }

func (w *Writer[T]) encode(rows ...T) (*scratch[T], error) {
	s := w.scratch.Get().(*scratch[T])
	s.bytes, s.lengths = s.bytes[:0], s.lengths[:0]
	for _, row := range rows {
		s.row = row
		before := len(s.bytes)
		bytes, column, err := rowbinary.AppendRow(w.encoder, s.bytes, &s.row)
		if err != nil {
			return s, &ValueError{Column: column, Err: err}
		}
		if len(bytes)-before > math.MaxUint32 {
			return s, &TooLargeError{Bytes: int64(len(bytes) - before), MaxBytes: math.MaxUint32}
		}
		s.bytes = bytes
		s.lengths = append(s.lengths, uint32(len(bytes)-before))
	}
	return s, nil
}

func (s *scratch[T]) rows() Rows { return Rows{Bytes: s.bytes, Lengths: s.lengths} }

func (w *Writer[T]) giveBack(s *scratch[T]) {
	var none T
	s.row = none
	if cap(s.bytes) > maxScratchBytes {
		s.bytes = nil
	}
	w.scratch.Put(s)
}
