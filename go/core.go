package windrow

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// core decides what a writer does next, and does it, for rows of whatever type.
//
// A row is taken (it counts in held before the buffer has it), waits in the buffer, is sealed with others to
// a batch, and settles: its batch is stored, or it is handed over with an error. Only then is its room free
// again. A writer that is closing is through when nothing is held, so no row that was taken can be
// overlooked.
//
// One goroutine seals batches and starts a goroutine for each attempt to send one, at most MaxInFlight at a
// time. Appends come from any goroutine; they take no lock but the buffer's, and wake the writer's goroutine
// only when there is something to be done. Locks: mu, then the buffer's own.
type core struct {
	buffer      Buffer
	store       Store
	destination *Destination
	options     Options
	log         *slog.Logger
	errors      *errorQueue

	held   atomic.Int64
	closed atomic.Bool
	// roomWanted counts calls that wait for room.
	roomWanted atomic.Int32
	// roomFreed says that they have to be told.
	roomFreed atomic.Bool
	wakeups   chan struct{}
	// sending ends when the writer is abandoned: attempts under way are given up.
	sending context.Context
	abandon context.CancelFunc
	sends   sync.WaitGroup
	done    chan struct{}

	mu      sync.Mutex
	flights flights
	settled settled
	kept    keptRows
	counts  Statistics
	// room is closed, and made anew, when there may be room for those who wait.
	room chan struct{}
	// sealedBefore: all of this writer's rows before this position are in batches.
	sealedBefore uint64
	// waitingSince is when the rows that wait began to; zero while none do.
	waitingSince time.Time
	// bufferAgain is when a buffer that failed is asked again.
	bufferAgain time.Time
	leftOversAt time.Time
	// unrecorded batches wait for the buffer's word.
	unrecorded []BatchID
	// wakes counts the buffer's words, so that none is missed.
	wakes   uint64
	outcome *CloseError
}

// bufferPause is how long a buffer is left alone after it failed.
const bufferPause = 500 * time.Millisecond

func newCore(buffer Buffer, store Store, destination *Destination, options Options) *core {
	c := &core{
		buffer:      buffer,
		store:       store,
		destination: destination,
		options:     options,
		log:         options.Logger.With("table", destination.QuotedTable()),
		errors:      newErrorQueue(options.MaxErrors, options.MaxErrorBytes),
		wakeups:     make(chan struct{}, 1),
		done:        make(chan struct{}),
		flights:     flights{byID: map[BatchID]*flight{}},
		settled:     settled{behind: map[uint64]uint64{}},
		room:        make(chan struct{}),
	}
	c.sending, c.abandon = context.WithCancel(context.Background())
	buffer.Attach(events{c})
	go c.run()
	return c
}

// append takes all of the rows, or none. It never waits for room.
func (c *core) append(rows Rows) (Appended, error) {
	bytes := rows.HeldBytes()
	if err := c.reserve(bytes); err != nil {
		return Appended{}, err
	}
	appended, err := c.buffer.Append(rows)
	if err != nil {
		c.giveBack(bytes)
		// A full buffer tells by itself, when something in it has settled.
		if !errors.Is(err, ErrFull) {
			c.tellRoomLater()
		}
		return Appended{}, err
	}
	if appended.Ready != NotReady {
		c.wake()
	}
	return appended, nil
}

func (c *core) wake() {
	select {
	case c.wakeups <- struct{}{}:
	default:
	}
}

// run is the writer's goroutine: until the writer is closed and drained, or abandoned.
func (c *core) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := c.next(time.Now())
		switch {
		case next.send != nil:
			c.sends.Add(1)
			go c.send(next.send)
			continue
		case next.drained:
			c.end()
			return
		}
		var due <-chan time.Time
		if !next.at.IsZero() {
			timer.Reset(time.Until(next.at))
			due = timer.C
		}
		select {
		case <-c.wakeups:
		case <-due:
		case <-c.sending.Done():
		}
	}
}

func (c *core) statistics() Statistics {
	open := c.buffer.Open()
	written := c.buffer.NextPosition()
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.RowsWritten = written
	counts.RowsWaiting = open.Rows
	counts.RowsInFlight = c.flights.rows
	counts.BatchesInFlight = uint64(len(c.flights.byID))
	counts.BytesHeld = c.held.Load()
	counts.ErrorsDropped = c.errors.droppedCount()
	return counts
}
