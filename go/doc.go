// Package windrow gathers rows in a program and stores them in ClickHouse in batches, losing nothing that it
// took.
//
// A [Writer] encodes each row when it is written, keeps it in a [Buffer] (in memory, on a disk, in Redis, or
// one of the program's own) and sends batches through a [Store], each under an id that never changes, so that
// a repeat is harmless. What ClickHouse refuses for good is narrowed down to the guilty rows, which come back
// with the error.
//
// Rows are structs with `ch` tags, or lists of values ([Row]):
//
//	type Event struct {
//		ID   uint64    `ch:"id"`
//		What string    `ch:"what"`
//		At   time.Time `ch:"at"`
//	}
//
//	store, err := windrow.HTTP("http://default@localhost:8123/default")
//	writer, err := windrow.Open[Event](ctx, store, "events", windrow.Options{})
//	err = writer.Write(Event{ID: 1, What: "started", At: time.Now()})
//	err = writer.Close(ctx)
//
// A row that a call has taken is stored, or comes back through [Writer.Errors]. Memory is bounded: a call
// that finds the buffer full says so ([ErrFull]), or waits ([Writer.WriteBlocking]); no row is dropped in
// silence.
//
// The package depends on the standard library alone. Buffers that survive the process are in the packages
// diskbuffer and redisbuffer; a store over ClickHouse's native protocol, and a collector for Prometheus, are
// modules of their own.
package windrow
