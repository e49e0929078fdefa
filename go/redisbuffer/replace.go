package redisbuffer

import (
	"cmp"
	"errors"
	"slices"

	windrow "windrow.dev/go"
)

// A writer whose lane was lost goes on in another.
//
// Either another process thought it dead (it was stopped for longer than its lease) and has its rows now:
// then they are that one's, and this writer only waits to hear that they are stored. Or Redis itself has
// forgotten them (it was started again without its data): then what is still in this process's memory is
// written there once more.

type replacement struct {
	lane  lane
	first uint64
	// restores: Redis has forgotten the lane, and what is known of it here is written there again.
	restores bool
	// inHand is what that was at the first attempt.
	inHand *inHand
}

// inHand is what of this writer's rows is known when its lane is restored. It is written as it is until Redis has
// confirmed all of it: entries that another attempt cuts otherwise would stand beside those that had arrived.
type inHand struct {
	// pieces are sealed and waiting rows, in order.
	pieces  []piece
	batches []namedRecord
	// end is where the rows begin of which Redis has not confirmed anything.
	end uint64
}

func (w *worker) lose(lost lostLane) {
	w.mu.Lock()
	of := w.state.lanes[lost.lane]
	wasGone := of.isGone
	of.isGone = true
	isOwn := lost.lane == w.state.own
	if !isOwn && !wasGone {
		for id, batch := range w.state.batches {
			if batch.lane == lost.lane {
				delete(w.state.batches, id)
			}
		}
	}
	w.mu.Unlock()
	switch {
	case wasGone:
	case isOwn:
		lane := w.bucket.lane(of.lane.name+"+", w.owner)
		w.replacement = &replacement{lane: lane, first: lost.nextRow, restores: lost.owner == ""}
	default:
		w.events.Wake()
	}
}

// replaceLane goes on in a lane of its own again, after the former one was lost.
func (w *worker) replaceLane() error {
	wanted := w.replacement
	if wanted == nil {
		return nil
	}
	if wanted.restores {
		w.mu.Lock()
		former := w.state.lanes[w.state.own].lane
		w.mu.Unlock()
		next, isEmptied, err := w.link.tombstone(w.bucket, former)
		if err != nil {
			return err
		}
		if isEmptied {
			// It was not forgotten: whoever took it has stored all of it.
			wanted.first, wanted.restores = next, false
		}
	}
	keptBefore, hasKept, err := uint64(0), false, error(nil)
	if wanted.restores {
		err = w.restore(wanted)
	} else {
		keptBefore, hasKept, err = w.giveAway(wanted)
	}
	if err != nil {
		return err
	}
	w.replacement = nil
	if hasKept {
		w.events.Kept(keptBefore)
	}
	w.events.Wake()
	return nil
}

// firstQueued gives the first row of the queued appends and withdrawals, of those at or behind a position.
func (s *state) firstQueued(from uint64) uint64 {
	for _, queued := range s.ops {
		first := uint64(0)
		switch queued := queued.(type) {
		case *appendOp:
			first = queued.first
		case *withdrawOp:
			first = queued.rows.From
		default:
			continue
		}
		if first >= from {
			return first
		}
	}
	return s.nextPosition
}

// giveAway: rows before the replacement's first lie in the lane that is another's now. It says before which
// position rows are kept.
func (w *worker) giveAway(to *replacement) (keptBefore uint64, hasKept bool, err error) {
	w.mu.Lock()
	first := w.state.firstQueued(to.first)
	w.mu.Unlock()
	if err := w.register(w.link, to.lane, first); err != nil {
		return 0, false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.state
	former := s.own
	ops := s.ops
	s.ops = nil
	for _, queued := range ops {
		switch op := queued.(type) {
		case *appendOp:
			// It came there before the lane was lost.
			if op.first < first {
				if before, isKept := s.confirm(op); isKept {
					keptBefore, hasKept = before, true
				}
				continue
			}
		case *withdrawOp:
			if op.rows.From < first {
				continue
			}
		case *recordOp:
			if op.lane == former {
				continue
			}
		}
		s.ops = append(s.ops, queued)
	}
	s.givenAway = append(s.givenAway, givenAway{s.lanes[former].lane, s.takeUnrecorded(former)})
	s.enterOwn(to.lane)
	return keptBefore, hasKept, nil
}

// takeUnrecorded takes the rows that are another's now: those that wait, and those of batches that were not
// recorded.
func (s *state) takeUnrecorded(former int) []heldRows {
	var rows []heldRows
	for _, piece := range append(s.forgetWaiting(), s.half...) {
		rows = append(rows, heldRows{piece.positions(), piece.rows.HeldBytes()})
	}
	s.half = nil
	for id, batch := range s.batches {
		if batch.lane == former && !batch.isRecorded {
			delete(s.batches, id)
			rows = append(rows, heldRows{batch.sealed.Positions, batch.sealed.HeldBytes})
		}
	}
	return rows
}

var errForgotten = errors.New("redis has no room for the rows that it has forgotten")

// restore writes what is in hand into the new lane.
func (w *worker) restore(wanted *replacement) error {
	if wanted.inHand == nil {
		w.mu.Lock()
		wanted.inHand = w.state.inHand()
		w.mu.Unlock()
	}
	lane, pieces, end := wanted.lane, wanted.inHand.pieces, wanted.inHand.end
	first := end
	if len(pieces) > 0 {
		first = pieces[0].first
	}
	if err := w.register(w.link, lane, first); err != nil {
		return err
	}
	verdicts, err := w.link.judge(w.bucket, func(p *pipeline) {
		next := first
		for _, piece := range pieces {
			if piece.first > next {
				p.withdraw(lane, windrow.Positions{From: next, To: piece.first})
			}
			p.append(lane, piece.first, piece.rows)
			next = piece.positions().To
		}
		if end > next {
			p.withdraw(lane, windrow.Positions{From: next, To: end})
		}
		p.record(lane, 1, change{writes: wanted.inHand.batches})
	})
	if err != nil {
		return err
	}
	for _, verdict := range verdicts {
		if verdict.kind != isDone {
			return errForgotten
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.restored(lane, wanted.inHand)
	return nil
}

func (s *state) inHand() *inHand {
	found := inHand{pieces: append(slices.Clone(s.waiting), s.half...), end: s.firstQueued(0)}
	for id, batch := range s.batches {
		if batch.lane == s.own {
			found.pieces = append(found.pieces, piece{batch.members.From, batch.rows})
			found.batches = append(found.batches, namedRecord{id, recorded{rows: batch.members}})
		}
	}
	slices.SortFunc(found.pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	return &found
}

// restored: the new lane has what was in hand. Batches that were sealed, cut or done meanwhile are not as they were
// written there: that is recorded now.
func (s *state) restored(lane lane, had *inHand) {
	former := s.own
	s.enterOwn(lane)
	own := s.lanes[s.own]
	own.serial = 1
	for _, piece := range had.pieces {
		own.index.addEntry(piece.positions())
	}
	s.ops = slices.DeleteFunc(s.ops, func(queued op) bool {
		record, isRecord := queued.(*recordOp)
		return isRecord && record.lane == former
	})
	for _, batch := range had.batches {
		own.index.addRecorded(batch.id, batch.recorded)
		if found, isThere := s.batches[batch.id]; isThere {
			found.lane, found.isRecorded = s.own, true
		}
	}
	added := s.takeBatchesOf(former)
	for _, batch := range had.batches {
		if _, isThere := s.batches[batch.id]; !isThere {
			added = s.recordEnd(batch, added)
		}
	}
	for _, batch := range added {
		s.record(s.own, own.index.seal(batch.id, batch.rows))
	}
}

// takeBatchesOf brings a lane's batches into the own one. They are in the order of their rows.
func (s *state) takeBatchesOf(former int) []namedRecord {
	var taken []namedRecord
	for id, batch := range s.batches {
		if batch.lane == former {
			batch.lane = s.own
			taken = append(taken, namedRecord{id, recorded{rows: batch.members}})
		}
	}
	slices.SortFunc(taken, func(a, b namedRecord) int { return cmp.Compare(a.rows.From, b.rows.From) })
	return taken
}

// recordEnd is for a batch that was written to the lane and is not there any more: it is done, or was cut, and some of
// its pieces may be done. What is none of its pieces is given back.
func (s *state) recordEnd(parent namedRecord, added []namedRecord) []namedRecord {
	var children, others []namedRecord
	at := parent.rows.From
	addDone := func(to uint64) {
		if at < to {
			done := recorded{rows: windrow.Positions{From: at, To: to}, isDone: true}
			children = append(children, namedRecord{windrow.NewBatchID(), done})
		}
	}
	for _, batch := range added {
		if batch.rows.From < parent.rows.From || batch.rows.To > parent.rows.To {
			others = append(others, batch)
			continue
		}
		addDone(batch.rows.From)
		children = append(children, batch)
		at = batch.rows.To
	}
	index := s.lanes[s.own].index
	if len(children) == 0 {
		s.record(s.own, index.markDone(parent.id))
		return others
	}
	addDone(parent.rows.To)
	change := index.split(parent.id, nil)
	change.writes = children
	for _, child := range children {
		index.addRecorded(child.id, child.recorded)
	}
	s.record(s.own, change)
	s.record(s.own, index.tidy())
	return others
}
