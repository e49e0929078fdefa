package windrow

import (
	"context"
	"errors"
	"time"
)

// send makes one attempt to store a batch, in a goroutine of its own.
func (c *core) send(sent *flight) {
	defer c.sends.Done()
	defer c.wake()
	wakes := c.startAttempt(sent)
	rows, err := c.buffer.Load(sent.ID)
	if err != nil {
		c.notLoaded(sent, err, wakes)
		return
	}
	ctx, cancel := context.WithTimeout(c.sending, c.options.StoreTimeout)
	defer cancel()
	batch := Batch{ID: sent.ID, Destination: c.destinationOf(sent), Rows: rows, Settings: c.options.Settings}
	if err := c.store.Insert(ctx, batch); err != nil {
		c.failed(sent, Classify(err), time.Now())
		return
	}
	c.stored(sent)
}

// startAttempt gives the number of the buffer's latest word: a later one may be about this batch.
func (c *core) startAttempt(sent *flight) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.failed > 0 {
		c.counts.Retries++
	}
	return c.wakes
}

func (c *core) destinationOf(sent *flight) *Destination {
	if sent.Destination != nil {
		return sent.Destination
	}
	return c.destination
}

func (c *core) notLoaded(sent *flight, err error, wakes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, ErrDamaged):
		// Nobody can read it any more: that is told, and others go on.
		c.handOver(sent, ReasonLost, err)
	case errors.Is(err, ErrUnknownBatch):
		// Another process has it now, and its rows with it.
		c.flights.remove(sent)
	case errors.Is(err, ErrNotYet) && wakes != c.wakes:
		c.flights.setStage(sent, stageReady, time.Time{})
	case errors.Is(err, ErrNotYet):
		c.unrecorded = append(c.unrecorded, sent.ID)
		c.flights.setStage(sent, stageWaiting, time.Now().Add(bufferPause))
	default:
		c.counts.LastError = err
		c.flights.setStage(sent, stageWaiting, time.Now().Add(bufferPause))
	}
}

// stored: all rows of the batch are in the table.
func (c *core) stored(sent *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flights.remove(sent)
	c.counts.RowsStored += sent.Rows
	c.counts.BatchesStored++
	c.markDone(sent.ID)
	c.free(sent.Positions, sent.HeldBytes)
}

// markDone may fail: the batch is sent again after a crash then, under the same id.
func (c *core) markDone(id BatchID) {
	if err := c.buffer.Done(id); err != nil && !errors.Is(err, ErrUnknownBatch) {
		c.counts.LastError = err
	}
}

// failed: the batch is sent again, cut, or handed over.
func (c *core) failed(sent *flight, failure Failure, now time.Time) {
	survives := c.buffer.Survives()
	var pause time.Duration
	isAgain := false
	if failure.Kind == Passing || failure.Kind == Refused && survives {
		// Asked without the lock: a program's own policy may look at the writer.
		pause, isAgain = c.options.Retry.Again(failure, c.countFailure(sent, now))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.LastError = failure.Err
	if c.sending.Err() != nil {
		// The attempt was given up with the writer, and what became of it isn't known: the end of the writer
		// says so.
		return
	}
	c.judge(sent, failure, pause, isAgain, now)
}

func (c *core) countFailure(sent *flight, now time.Time) Attempts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.failed == 0 {
		sent.firstFailed = now
	}
	sent.failed++
	return Attempts{Failed: sent.failed, Elapsed: now.Sub(sent.firstFailed), Survives: c.buffer.Survives()}
}

func (c *core) judge(sent *flight, failure Failure, pause time.Duration, isAgain bool, now time.Time) {
	survives := c.buffer.Survives()
	switch {
	case failure.Kind == BadValues && sent.Rows > 1:
		c.narrow(sent, failure, now)
	case failure.Kind == BadValues:
		c.handOver(sent, ReasonValues, failure.Err)
	case failure.Kind == MaybeStored:
		c.handOver(sent, ReasonMaybeStored, failure.Err)
	case failure.Kind == Refused && !survives:
		c.handOver(sent, ReasonRefused, failure.Err)
	case !isAgain:
		c.handOver(sent, ReasonGaveUp, failure.Err)
	default:
		c.log.Warn("windrow: a batch is sent again", "batch", sent.ID, "rows", sent.Rows, "failed_attempts", sent.failed,
			"again_after", pause, "error", loggable(failure.Err))
		to := stageWaiting
		if failure.Kind == Refused {
			to = stageSetAside
		}
		c.flights.setStage(sent, to, now.Add(pause))
	}
}

// narrow cuts out the row that the error names, or else cuts in half.
func (c *core) narrow(sent *flight, failure Failure, now time.Time) {
	rows := int(sent.Rows)
	cuts := []int{rows / 2}
	if row := failure.Row; row == 1 || row == rows {
		cuts = []int{max(row-1, 1)}
	} else if row > 1 && row < rows {
		cuts = []int{row - 1, row}
	}
	pieces, err := c.buffer.Split(sent.ID, cuts)
	if err != nil {
		// It is sent again as it is, and then cut.
		c.counts.LastError = err
		c.flights.setStage(sent, stageWaiting, now.Add(bufferPause))
		return
	}
	c.counts.BatchesSplit++
	c.flights.replace(sent, pieces)
}

// handOver gives rows back to the program.
func (c *core) handOver(sent *flight, reason Reason, cause error) {
	rows, err := c.buffer.Load(sent.ID)
	if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknownBatch) {
		// They come to their end when they can be read again.
		c.counts.LastError = err
		c.flights.setStage(sent, stageWaiting, time.Now().Add(bufferPause))
		return
	}
	c.flights.remove(sent)
	c.comeBack(sent.ID, reason, rows, sent.Rows, c.destinationOf(sent), cause)
	c.markDone(sent.ID)
	c.free(sent.Positions, sent.HeldBytes)
}

// comeBack copies the rows: an error keeps nothing of a buffer's memory.
func (c *core) comeBack(id BatchID, reason Reason, rows Rows, count uint64, destination *Destination, cause error) {
	c.counts.RowsFailed += count
	c.log.Error("windrow: rows come back", "batch", id, "rows", count, "reason", reason.String(), "error", loggable(cause))
	c.errors.push(&WriteError{
		BatchID: id, Reason: reason, RowCount: count, Rows: rows.Clone(), Destination: destination, Err: cause,
	})
}

// loggable leaves out what ClickHouse says beside the code: it may have values of rows in it.
func loggable(err error) any {
	var exception *Exception
	if errors.As(err, &exception) {
		return exception.Code
	}
	return err
}
