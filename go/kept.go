package windrow

// keptRows knows which rows the buffer has kept, and who waits for that.
type keptRows struct {
	before uint64
	// waiting calls, by their rows, which ascend.
	waiting []keptWaiter
}

type keptWaiter struct {
	rows Positions
	// told has room for the one answer: nobody waits for who asked.
	told chan error
}

func (k *keptRows) reach(before uint64) {
	k.before = max(k.before, before)
	reached := 0
	for reached < len(k.waiting) && k.waiting[reached].rows.To <= k.before {
		k.waiting[reached].told <- nil
		reached++
	}
	k.waiting = k.waiting[reached:]
}

// refuse tells those that wait for these rows, and gives the rows that nobody waits for.
func (k *keptRows) refuse(rows Positions, err error) []Positions {
	var unwatched []Positions
	at := rows.From
	left := k.waiting[:0:0]
	for _, waiter := range k.waiting {
		if waiter.rows.To <= rows.From || waiter.rows.From >= rows.To {
			left = append(left, waiter)
			continue
		}
		if waiter.rows.From > at {
			unwatched = append(unwatched, Positions{at, waiter.rows.From})
		}
		waiter.told <- err
		at = min(waiter.rows.To, rows.To)
	}
	if at < rows.To {
		unwatched = append(unwatched, Positions{at, rows.To})
	}
	k.waiting = left
	return unwatched
}

// appendWatched takes rows like append. Where the buffer's promise holds only later, the channel tells when.
func (c *core) appendWatched(rows Rows) (<-chan error, error) {
	if !c.buffer.Survives() {
		_, err := c.append(rows)
		return nil, err
	}
	// The buffer tells under the lock, so these rows can't be kept or refused before they are watched.
	c.mu.Lock()
	defer c.mu.Unlock()
	appended, err := c.append(rows)
	if err != nil || appended.Kept == KeptNow {
		return nil, err
	}
	told := make(chan error, 1)
	positions := Positions{appended.First, appended.First + uint64(rows.Count())}
	c.kept.waiting = append(c.kept.waiting, keptWaiter{positions, told})
	return told, nil
}

// events is what a buffer tells by itself.
type events struct{ c *core }

func (e events) Kept(before uint64) {
	c := e.c
	c.mu.Lock()
	defer c.wake()
	defer c.mu.Unlock()
	c.kept.reach(before)
}

func (e events) Refused(positions Positions, rows Rows, err error) {
	c := e.c
	c.mu.Lock()
	defer c.wake()
	defer c.mu.Unlock()
	c.counts.LastError = err
	for _, unwatched := range c.kept.refuse(positions, err) {
		part := rows.Part(int(unwatched.From-positions.From), int(unwatched.To-positions.From))
		c.comeBack(BatchID{}, ReasonNotKept, part, unwatched.Count(), c.destination, err)
	}
	c.free(positions, rows.HeldBytes())
}

func (e events) StoredElsewhere(positions Positions, heldBytes int64) {
	c := e.c
	c.mu.Lock()
	defer c.wake()
	defer c.mu.Unlock()
	c.counts.RowsStored += positions.Count()
	c.sealedBefore = max(c.sealedBefore, positions.To)
	c.free(positions, heldBytes)
}

func (e events) Wake() {
	c := e.c
	c.mu.Lock()
	defer c.wake()
	defer c.mu.Unlock()
	c.wakes++
	for _, id := range c.unrecorded {
		if waiting := c.flights.byID[id]; waiting != nil && waiting.stage.waits() {
			c.flights.setStage(waiting, stageReady, waiting.until)
		}
	}
	c.unrecorded = c.unrecorded[:0]
}
