package windrow

import (
	"errors"
	"time"
)

// next is what is to be done now.
type next struct {
	// send is a batch to be sent.
	send *flight
	// at is when to ask again; zero: when woken.
	at      time.Time
	drained bool
}

func (c *core) next(now time.Time) next {
	c.lookForLeftOvers(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending.Err() != nil {
		return next{drained: true}
	}
	nextWake := c.flights.wake(now)
	if c.roomFreed.Swap(false) {
		c.tellRoom()
	}
	for {
		if ready := c.flights.ready(c.options.Ordered, c.options.MaxInFlight); ready != nil {
			c.flights.setStage(ready, stageSent, time.Time{})
			return next{send: ready}
		}
		if !c.seal(now) {
			break
		}
	}
	if c.closed.Load() && len(c.flights.line) == 0 && c.held.Load() == 0 {
		return next{drained: true}
	}
	return next{at: earliest(nextWake, c.sealAt(now), c.lookAt(now))}
}

// seal makes a batch of what waits, if there is a reason and a free place. It says whether there is a new
// one.
func (c *core) seal(now time.Time) bool {
	open := c.buffer.Open()
	if open.Rows == 0 {
		c.waitingSince = time.Time{}
		return false
	}
	if c.waitingSince.IsZero() {
		c.waitingSince = now
	}
	if c.isCrowded() || now.Before(c.bufferAgain) || !c.hasReason(open, now) {
		return false
	}
	sealed, err := c.buffer.Seal()
	if err != nil {
		c.counts.LastError = err
		c.bufferAgain = now.Add(bufferPause)
		return false
	}
	if sealed == nil {
		return false
	}
	c.sealedBefore = max(c.sealedBefore, sealed.Positions.To)
	c.flights.push(*sealed)
	// What is left came while this batch was gathered.
	c.waitingSince = time.Time{}
	return true
}

// isCrowded says that every place is taken: only the end of a batch changes anything.
func (c *core) isCrowded() bool {
	if c.options.Ordered {
		return len(c.flights.line) > 0
	}
	return c.flights.shares >= c.options.MaxInFlight
}

func (c *core) hasReason(open OpenRows, now time.Time) bool {
	return open.FullBatches > 0 || !now.Before(c.waitingSince.Add(c.options.FlushInterval)) ||
		c.settled.flushBefore() > c.sealedBefore || c.closed.Load()
}

// sealAt says when something that waits will be due that no call announces.
func (c *core) sealAt(now time.Time) time.Time {
	switch {
	case c.waitingSince.IsZero() || c.isCrowded():
		return time.Time{}
	case now.Before(c.bufferAgain):
		return c.bufferAgain
	default:
		return c.waitingSince.Add(c.options.FlushInterval)
	}
}

func (c *core) lookAt(now time.Time) time.Time {
	switch {
	case !c.buffer.Survives():
		return time.Time{}
	case !c.closed.Load():
		return c.leftOversAt
	case !c.isRestElsewhere():
		return time.Time{}
	}
	c.leftOversAt = earliest(c.leftOversAt, now.Add(bufferPause))
	return c.leftOversAt
}

// isRestElsewhere says that this writer has nothing to send any more, and that rows of it are not stored: another process
// has taken them, and may die before it has stored them.
func (c *core) isRestElsewhere() bool {
	return len(c.flights.line) == 0 && c.buffer.Open().Rows == 0 && c.held.Load() > 0
}

func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// lookForLeftOvers doesn't hold the lock while it reads: there may be much. A writer that is closing does not
// begin with what others have left, unless it has not looked at all, or waits for rows of its own that may be
// among them.
func (c *core) lookForLeftOvers(now time.Time) {
	if !c.buffer.Survives() || !c.isTimeToLook(now) {
		return
	}
	found, err := c.buffer.LeftOvers()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.counts.LastError = err
		return
	}
	c.counts.DamagedBytes += found.DamagedBytes
	for _, complaint := range found.Complaints {
		c.log.Error("windrow: the buffer is damaged", "complaint", complaint)
		c.counts.LastError = errors.New(complaint)
	}
	for _, sealed := range found.Batches {
		// One that was given up to another process, and came back when that had died, is still under way
		// here.
		if c.flights.byID[sealed.ID] == nil {
			c.counts.RowsLeftOver += sealed.Rows
			c.flights.push(sealed)
		}
	}
}

func (c *core) isTimeToLook(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isFirst := c.leftOversAt.IsZero()
	if !isFirst && (now.Before(c.leftOversAt) || c.closed.Load() && !c.isRestElsewhere()) {
		return false
	}
	c.leftOversAt = now.Add(c.options.LeftOversInterval)
	return true
}
