package windrow

import "context"

// settled knows which rows have come to their end, and who waits for that: all before low have, and ranges
// behind it.
type settled struct {
	low    uint64
	behind map[uint64]uint64
	// flushes wait for all rows before a position.
	flushes []flush
}

type flush struct {
	before uint64
	done   chan struct{}
}

func (s *settled) flush(before uint64) <-chan struct{} {
	done := make(chan struct{})
	if before <= s.low {
		close(done)
		return done
	}
	s.flushes = append(s.flushes, flush{before, done})
	return done
}

// flushBefore says until where somebody waits for all rows.
func (s *settled) flushBefore() uint64 {
	before := uint64(0)
	for _, waiting := range s.flushes {
		before = max(before, waiting.before)
	}
	return before
}

func (s *settled) settle(rows Positions) {
	if rows.Count() == 0 {
		return
	}
	s.behind[rows.From] = rows.To
	for to, isThere := s.behind[s.low]; isThere; to, isThere = s.behind[s.low] {
		delete(s.behind, s.low)
		s.low = to
	}
	s.tell(s.low)
}

// count says how many rows have come to their end.
func (s *settled) count() uint64 {
	count := s.low
	for from, to := range s.behind {
		count += to - from
	}
	return count
}

// flush waits until all rows that were taken before have settled.
func (c *core) flush(ctx context.Context) error {
	c.mu.Lock()
	before := c.buffer.NextPosition()
	flushed := c.settled.flush(before)
	c.mu.Unlock()
	c.wake()
	select {
	case <-flushed:
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled.low < before {
		return ErrClosed
	}
	return nil
}

// letGo tells all who wait: the writer ends.
func (s *settled) letGo() { s.tell(^uint64(0)) }

func (s *settled) tell(before uint64) {
	later := s.flushes[:0]
	for _, waiting := range s.flushes {
		if waiting.before <= before {
			close(waiting.done)
		} else {
			later = append(later, waiting)
		}
	}
	clear(s.flushes[len(later):])
	s.flushes = later
}
