package windrow

import (
	"context"
	"errors"
	"slices"
)

var errClosedBefore = errors.New("windrow: the writer was closed before these rows were known to be stored")

// close takes nothing more and sends what was taken, until ctx ends.
func (c *core) close(ctx context.Context) error {
	c.closed.Store(true)
	c.mu.Lock()
	c.tellRoom()
	c.mu.Unlock()
	c.wake()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.abandon()
		<-c.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcome == nil {
		return nil
	}
	outcome := *c.outcome
	outcome.Err = ctx.Err()
	return &outcome
}

// end lets go of the buffer when the writer is drained or abandoned.
func (c *core) end() {
	c.sends.Wait()
	c.countKept()
	c.handOverAll()
	if err := c.buffer.Close(); err != nil {
		c.log.Error("windrow: the buffer was not closed in order", "error", err)
	}
	// An append that had seen an open writer may have come in before the buffer closed.
	c.handOverAll()
	c.mu.Lock()
	c.settled.letGo()
	c.kept.letGo()
	c.mu.Unlock()
	c.abandon()
	c.errors.close()
	close(c.done)
}

// countKept says how many rows stay in a buffer that survives: this writer's, also those that another process has taken,
// and what it had found of others.
func (c *core) countKept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.buffer.NextPosition() - c.settled.count()
	for _, left := range c.flights.line {
		kept += left.Rows - left.Positions.Count()
	}
	if kept > 0 && c.buffer.Survives() {
		c.outcome = &CloseError{RowsKept: kept}
	}
}

// handOverAll gives back what was not stored and doesn't survive the process.
func (c *core) handOverAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buffer.Survives() {
		return
	}
	for sealed, err := c.buffer.Seal(); sealed != nil && err == nil; sealed, err = c.buffer.Seal() {
		c.flights.push(*sealed)
	}
	before := c.counts.RowsFailed
	for _, left := range slices.Clone(c.flights.line) {
		reason := ReasonClosed
		if left.stage == stageSent {
			reason = ReasonMaybeStored
		}
		c.handOver(left, reason, errClosedBefore)
	}
	if handedOver := c.counts.RowsFailed - before; handedOver > 0 {
		if c.outcome == nil {
			c.outcome = &CloseError{}
		}
		c.outcome.RowsHandedOver += handedOver
	}
}

// letGo tells all who wait for a buffer that is closed: it may have their rows.
func (k *keptRows) letGo() {
	for _, waiter := range k.waiting {
		waiter.told <- ErrClosed
	}
	k.waiting = nil
}
