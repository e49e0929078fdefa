package redisbuffer

import (
	"errors"
	"fmt"
	"time"

	windrow "windrow.dev/go"
)

const (
	// pauseTime is how long to wait before Redis is tried again, or asked again for room.
	pauseTime = 50 * time.Millisecond
	// closeLimit is how long a writer that is closed waits for what it has still to say.
	closeLimit = 2 * time.Second
)

// worker is the goroutine that talks to Redis: it takes what is queued, sends it as one pipeline, and tells
// what came of it.
//
// Whatever was queued while a pipeline was under way goes in the next: that is the group commit. A connection
// that breaks takes nothing along: the same operations are sent again on the next one, and the scripts see
// which had been applied.
type worker struct {
	*buffer
	link *link
	// trouble is what the last attempt to reach Redis came to.
	trouble error
	renewAt time.Time
	adoptAt time.Time
	closeBy time.Time
	// replacement is a lane to go on in, as the own one was lost.
	replacement *replacement
}

func newWorker(buffer *buffer, link *link) *worker {
	now := time.Now()
	lease := buffer.address.lease
	return &worker{buffer: buffer, link: link, renewAt: now.Add(lease / 3), adoptAt: now.Add(lease / 2)}
}

// turn says what to do after one.
type turn int

const (
	goOn turn = iota
	pause
	end
)

func (w *worker) run() {
	defer close(w.ended)
	<-w.attached
	for {
		next, err := w.turn()
		if err != nil {
			w.trouble = err
			w.link.close()
			w.link = nil
			next = pause
		}
		switch next {
		case pause:
			w.pause()
		case end:
			w.link.close()
			return
		}
	}
}

func (w *worker) turn() (turn, error) {
	closed := w.waitForWork()
	now := time.Now()
	if closed && w.closeBy.IsZero() {
		w.closeBy = now.Add(closeLimit)
	}
	if closed && !now.Before(w.closeBy) {
		return end, nil
	}
	w.expire(now)
	if w.link == nil {
		opened, err := openLink(w.address)
		if err != nil {
			return pause, err
		}
		w.link = opened
	}
	if err := w.replaceLane(); err != nil {
		return pause, err
	}
	if err := w.keepHouse(now, closed); err != nil {
		return pause, err
	}
	if w.replacement != nil {
		// What is queued is meant for a lane that is not ours any more.
		return goOn, nil
	}
	next, hasFlown, err := w.fly()
	if err != nil || hasFlown {
		return next, err
	}
	if closed {
		return end, w.leaveAll()
	}
	return goOn, nil
}

// waitForWork returns when there is something to do, or something to be looked after. It says whether the
// writer is closed.
func (w *worker) waitForWork() bool {
	for {
		w.mu.Lock()
		closed, hasOps := w.state.isClosed, !w.state.queue.isEmpty()
		w.mu.Unlock()
		until := w.renewAt
		if w.adoptAt.Before(until) {
			until = w.adoptAt
		}
		left := time.Until(until)
		if closed || hasOps || w.replacement != nil || left <= 0 {
			return closed
		}
		timer := time.NewTimer(left)
		select {
		case <-w.rung:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pause waits a moment, or until the next append's time is over.
func (w *worker) pause() {
	now := time.Now()
	until := now.Add(pauseTime)
	w.mu.Lock()
	if deadline := w.state.queue.nextDeadline(); !deadline.IsZero() && deadline.Before(until) {
		until = deadline
	}
	w.mu.Unlock()
	time.Sleep(until.Sub(now))
	w.expire(time.Now())
}

func (w *worker) expire(now time.Time) {
	w.mu.Lock()
	deadline := w.state.queue.nextDeadline()
	if deadline.IsZero() || deadline.After(now) {
		w.mu.Unlock()
		return
	}
	refused := w.state.expire(now)
	w.mu.Unlock()
	err := fmt.Errorf("windrow: the writer's Redis had no room for the rows for %v: they were not taken", w.address.patience)
	if w.trouble != nil {
		err = fmt.Errorf("windrow: the writer's Redis was not reached for %v, the rows were not taken: %w",
			w.address.patience, w.trouble)
	}
	for _, piece := range refused {
		w.events.Refused(piece.positions(), piece.rows, err)
	}
}

// fly sends what is queued, and says whether there was anything.
func (w *worker) fly() (turn, bool, error) {
	w.mu.Lock()
	flight := w.state.queue.takeFlight(w.state.isFull)
	w.mu.Unlock()
	if len(flight) == 0 {
		return goOn, false, nil
	}
	var next turn
	var err error
	if wanted, isRead := flight[0].(*readOp); isRead {
		err = w.read(wanted.id)
	} else {
		var verdicts []verdict
		if verdicts, err = w.send(flight); err == nil {
			w.trouble = nil
			next = w.settle(flight, verdicts)
		}
	}
	if err != nil {
		w.mu.Lock()
		w.state.queue.putBack(flight)
		w.mu.Unlock()
	}
	return next, true, err
}

func (w *worker) send(flight []op) ([]verdict, error) {
	w.mu.Lock()
	own := w.state.lanes[w.state.own].lane
	lanes := make([]lane, len(w.state.lanes))
	for index, of := range w.state.lanes {
		lanes[index] = of.lane
	}
	w.mu.Unlock()
	return w.link.judge(w.bucket, func(p *pipeline) {
		for _, queued := range flight {
			switch queued := queued.(type) {
			case *appendOp:
				p.append(own, queued.piece)
			case *againOp:
				p.appendAgain(own, queued)
			case *withdrawOp:
				p.withdraw(own, queued.rows)
			case *skipOp:
				p.withdraw(own, queued.rows)
			case *discardOp:
				p.leave(lanes[queued.lane], true)
			case *recordOp:
				p.record(lanes[queued.lane], queued.serial, queued.change)
			}
		}
	})
}

// lostLane is a lane that is another's now, or nowhere.
type lostLane struct {
	lane int
	loss loss
}

// settlement is what became of a flight.
type settlement struct {
	keptBefore uint64
	hasKept    bool
	isRecorded bool
	// wasAsked: an append asked whether the bucket is full.
	wasAsked bool
	isFull   bool
	again    []op
	lost     []lostLane
}

func (w *worker) settle(flight []op, verdicts []verdict) turn {
	var outcome settlement
	w.mu.Lock()
	for index, told := range flight {
		w.state.settle(told, verdicts[index], &outcome)
	}
	w.state.queue.putBack(outcome.again)
	if outcome.wasAsked {
		w.state.isFull = outcome.isFull
	}
	isFull := w.state.isFull
	w.mu.Unlock()
	if outcome.hasKept {
		w.events.Kept(outcome.keptBefore)
	}
	if outcome.isRecorded || isFull {
		w.events.Wake()
	}
	for _, lost := range outcome.lost {
		w.lose(lost.lane, lost.loss)
	}
	if len(outcome.again) > 0 && w.replacement == nil {
		return pause
	}
	return goOn
}

func (s *state) settle(told op, verdict verdict, outcome *settlement) {
	lane := s.own
	if record, isRecord := told.(*recordOp); isRecord {
		lane = record.lane
	}
	if _, isDiscard := told.(*discardOp); isDiscard {
		// Whoever has the lane that was written elsewhere may have it.
		return
	}
	switch verdict.kind {
	case isDone:
		s.wasDone(told, outcome)
		return
	case isLost:
		outcome.lost = append(outcome.lost, lostLane{lane, lossOf(verdict)})
	case isGap:
		// It is behind an append for which there is no room; or Redis is not where it was.
		if len(outcome.again) == 0 {
			outcome.lost = append(outcome.lost, lostLane{s.own, loss{kind: isBehind}})
		}
	case isFull:
		outcome.wasAsked, outcome.isFull = true, true
	}
	outcome.again = append(outcome.again, told)
}

func (s *state) wasDone(told op, outcome *settlement) {
	switch told := told.(type) {
	case *appendOp:
		outcome.wasAsked = true
		if before, isKept := s.confirm(told); isKept {
			outcome.keptBefore, outcome.hasKept = before, true
		}
	case *againOp:
		s.wroteAgain(told)
		outcome.isRecorded = outcome.isRecorded || told.isBatch
	case *recordOp:
		s.recorded(told.change)
		outcome.isRecorded = outcome.isRecorded || len(told.change.writes) > 0
	}
}

func (w *worker) read(id windrow.BatchID) error {
	w.mu.Lock()
	wanted, isThere := w.state.batches[id]
	if !isThere {
		w.mu.Unlock()
		return nil
	}
	of := w.state.lanes[wanted.lane]
	lane, entries, rows := of.lane, of.index.entriesOf(wanted.members), wanted.members
	w.mu.Unlock()
	read, err := w.link.read(w.bucket, lane, entries, rows)
	if err != nil && !errors.Is(err, windrow.ErrDamaged) {
		return err
	}
	w.mu.Lock()
	wanted.rows, wanted.hasRows, wanted.err = read, err == nil, err
	w.mu.Unlock()
	w.events.Wake()
	return nil
}

// keepHouse looks after leases, lanes that became empty, and lanes of others that died.
func (w *worker) keepHouse(now time.Time, closed bool) error {
	if !now.Before(w.renewAt) {
		if err := w.renew(); err != nil {
			return err
		}
		w.renewAt = now.Add(w.address.lease / 3)
	}
	if now.Before(w.adoptAt) || closed || w.replacement != nil {
		return nil
	}
	if err := w.adoptAll(w.link); err != nil {
		return err
	}
	w.adoptAt = now.Add(w.address.lease / 2)
	return w.lookAfterGivenAway()
}

func (w *worker) renew() error {
	if err := w.leaveEmpty(); err != nil {
		return err
	}
	numbers, lanes := w.liveLanes()
	verdicts, err := w.link.judge(w.bucket, func(p *pipeline) {
		for _, lane := range lanes {
			p.renew(lane)
		}
	})
	if err != nil {
		return err
	}
	for index, verdict := range verdicts {
		if verdict.kind == isLost {
			w.lose(numbers[index], lossOf(verdict))
		}
	}
	return nil
}

func (w *worker) liveLanes() (numbers []int, lanes []lane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for number, of := range w.state.lanes {
		if !of.isGone {
			numbers, lanes = append(numbers, number), append(lanes, of.lane)
		}
	}
	return numbers, lanes
}

// leaveEmpty leaves adopted lanes of which everything is done.
func (w *worker) leaveEmpty() error {
	var empty []int
	w.mu.Lock()
	for number, of := range w.state.lanes {
		if number != w.state.own && !of.isGone && of.index.isEmpty() && !w.state.queue.hasRecords(number) {
			empty = append(empty, number)
		}
	}
	w.mu.Unlock()
	return w.leave(empty)
}

func (w *worker) leaveAll() error {
	numbers, _ := w.liveLanes()
	return w.leave(numbers)
}

func (w *worker) leave(numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	_, err := w.link.judge(w.bucket, func(p *pipeline) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, number := range numbers {
			p.leave(w.state.lanes[number].lane, false)
		}
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, number := range numbers {
		w.state.lanes[number].isGone = true
	}
	return nil
}

func (w *worker) lookAfterGivenAway() error {
	w.mu.Lock()
	waiting := append([]givenAway(nil), w.state.givenAway...)
	w.mu.Unlock()
	for _, given := range waiting {
		_, isEmptied, err := w.link.tombstone(w.bucket, given.lane)
		if err != nil {
			return err
		}
		if !isEmptied {
			continue
		}
		w.mu.Lock()
		left := w.state.givenAway[:0]
		for _, other := range w.state.givenAway {
			if other.lane.name != given.lane.name {
				left = append(left, other)
			}
		}
		w.state.givenAway = left
		w.mu.Unlock()
		for _, rows := range given.rows {
			w.events.StoredElsewhere(rows.positions, rows.bytes)
		}
	}
	return nil
}
