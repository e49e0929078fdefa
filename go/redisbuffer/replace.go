package redisbuffer

import (
	"cmp"
	"slices"
	"time"

	windrow "windrow.dev/go"
)

// A writer whose lane was lost goes on in another.
//
// Either another process thought it dead (it was stopped for longer than its lease) and has its rows now:
// then they are that one's, and this writer only waits to hear that they are stored. Or Redis itself has
// forgotten them (it was started again without its data, or with older data): then what is still in this
// process's memory is written there once more. It may be both: of a lane that another has, Redis says how far
// it goes, and what lies behind is forgotten.
//
// All of that is one change of what is known here, under one lock. What has to be written again is queued
// like everything else, before the rest; so a lane that is lost while that is under way is one that was lost.

// loss is what became of the lane that was lost.
type loss struct {
	kind lossKind
	// before: rows before this position lie in a lane that was taken, and are another's now.
	before uint64
}

type lossKind int

const (
	isTaken lossKind = iota
	// isForgotten: Redis doesn't know the lane.
	isForgotten
	// isBehind: the lane is ours still, but Redis has an earlier state of it.
	isBehind
)

func lossOf(verdict verdict) loss {
	if verdict.owner == "" {
		return loss{kind: isForgotten}
	}
	return loss{kind: isTaken, before: verdict.nextRow}
}

type replacement struct {
	lane lane
	loss loss
}

// lose: a lane is another's now, or nowhere.
func (w *worker) lose(number int, loss loss) {
	w.mu.Lock()
	of := w.state.lanes[number]
	wasGone := of.isGone
	of.isGone = true
	isOwn := number == w.state.own
	if !isOwn && !wasGone {
		w.state.giveUp(number, ^uint64(0))
	}
	w.mu.Unlock()
	switch {
	case wasGone:
	case isOwn:
		w.replacement = &replacement{lane: w.bucket.lane(of.lane.name+"+", w.owner), loss: loss}
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
	if wanted.loss.kind == isForgotten {
		w.mu.Lock()
		former := w.state.lanes[w.state.own].lane
		w.mu.Unlock()
		next, isEmptied, err := w.link.tombstone(w.bucket, former)
		if err != nil {
			return err
		}
		if isEmptied {
			// It was not forgotten: whoever took it has stored all of it.
			wanted.loss = loss{kind: isTaken, before: next}
		}
	}
	if err := w.register(w.link, wanted.lane); err != nil {
		return err
	}
	w.mu.Lock()
	keptBefore, hasKept := w.state.moveTo(wanted.lane, wanted.loss)
	w.mu.Unlock()
	w.replacement = nil
	// Whoever has a batch that was given away now hears so first: another may bring it back.
	w.adoptAt = time.Now().Add(w.address.lease / 2)
	if hasKept {
		w.events.Kept(keptBefore)
	}
	w.events.Wake()
	return nil
}

// hasLane says whether this writer has a lane, or is about to discard it.
func (s *state) hasLane(name string) bool {
	for number, of := range s.lanes {
		if of.lane.name == name && (!of.isGone || s.queue.discards(number)) {
			return true
		}
	}
	return false
}

// enterOwn enters a lane that has just been registered as the one of this writer's own rows.
func (s *state) enterOwn(lane lane) {
	s.own = len(s.lanes)
	s.lanes = append(s.lanes, &laneState{lane: lane, index: newLaneIndex()})
}

// moveTo goes on in a new lane. It says before which position rows are kept.
func (s *state) moveTo(lane lane, loss loss) (keptBefore uint64, hasKept bool) {
	former := s.own
	keptBefore, hasKept = s.takeArrived(loss.before)
	s.queue.again = slices.DeleteFunc(s.queue.again, func(queued op) bool {
		_, isDiscard := queued.(*discardOp)
		return !isDiscard
	})
	if loss.kind == isBehind {
		s.queue.again = append(s.queue.again, &discardOp{former})
	}
	s.giveUp(former, loss.before)
	s.enterOwn(lane)
	s.writeAgain(former, loss.before)
	return keptBefore, hasKept
}

// takeArrived confirms appends without an answer that came there before the lane was lost.
func (s *state) takeArrived(takenBefore uint64) (keptBefore uint64, hasKept bool) {
	queued := s.queue.rows
	s.queue.rows = nil
	for _, queued := range queued {
		switch op := queued.(type) {
		case *appendOp:
			if op.first < takenBefore {
				if before, isKept := s.confirm(op); isKept {
					keptBefore, hasKept = before, true
				}
				continue
			}
		case *withdrawOp:
			if op.rows.From < takenBefore {
				continue
			}
		}
		s.queue.rows = append(s.queue.rows, queued)
	}
	return keptBefore, hasKept
}

// giveUp: what lies in a lane that another has now is that one's. Batches of this writer's rows that were
// recorded are sent here, too, under the same id.
func (s *state) giveUp(number int, takenBefore uint64) {
	var rows []heldRows
	if number == s.own {
		for _, piece := range s.takeOut(func(piece piece) bool { return piece.positions().To <= takenBefore }) {
			rows = append(rows, heldRows{piece.positions(), piece.rows.HeldBytes()})
		}
	}
	for id, batch := range s.batches {
		if batch.lane != number || batch.members.To > takenBefore {
			continue
		}
		isOwn := batch.sealed.Positions.Count() > 0
		if isOwn && batch.isRecorded {
			continue
		}
		if isOwn {
			rows = append(rows, heldRows{batch.sealed.Positions, batch.sealed.HeldBytes})
		}
		delete(s.batches, id)
	}
	s.queue.forgetRecords(number)
	s.giveAway(number, rows)
}

// takeOut takes pieces that wait, or are a part of an append, and are kept here no longer.
func (s *state) takeOut(goes func(piece) bool) []piece {
	var gone []piece
	for _, piece := range s.waiting {
		if goes(piece) {
			gone = append(gone, piece)
			s.waitingRows -= uint64(piece.rows.Count())
			s.waitingBytes -= int64(len(piece.rows.Bytes))
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, goes)
	for _, piece := range s.half {
		if goes(piece) {
			gone = append(gone, piece)
		}
	}
	s.half = slices.DeleteFunc(s.half, goes)
	return gone
}

func (s *state) giveAway(number int, rows []heldRows) {
	if len(rows) > 0 {
		s.givenAway = append(s.givenAway, givenAway{s.lanes[number].lane, rows})
	}
}

// leaveWhole: a batch is to be cut whose lane is gone, and nobody would know the pieces. It is for the one who
// has the lane.
func (s *state) leaveWhole(id windrow.BatchID, left *batch) error {
	// It is not known yet what became of the own lane.
	if left.lane == s.own {
		return windrow.ErrNotYet
	}
	delete(s.batches, id)
	if left.sealed.Positions.Count() > 0 {
		s.giveAway(left.lane, []heldRows{{left.sealed.Positions, left.sealed.HeldBytes}})
	}
	return windrow.ErrUnknownBatch
}

// writeAgain queues what Redis doesn't have any more of the former lane, for the own one, in front of what was
// queued for that. Sealed rows lie there as one entry for each batch.
func (s *state) writeAgain(former int, takenBefore uint64) {
	index := s.lanes[s.own].index
	var again []*againOp
	for id, batch := range s.batches {
		if batch.lane != former || batch.members.To <= takenBefore || !batch.hasRows {
			continue
		}
		batch.lane = s.own
		index.addEntry(batch.members)
		index.seal(id, batch.members)
		again = append(again, &againOp{piece{batch.members.From, batch.rows}, id, true})
	}
	for _, piece := range s.waiting {
		index.addEntry(piece.positions())
		again = append(again, &againOp{piece: piece})
	}
	for _, piece := range s.half {
		again = append(again, &againOp{piece: piece})
	}
	slices.SortFunc(again, func(a, b *againOp) int { return cmp.Compare(a.first, b.first) })
	discards := s.queue.again
	s.queue.again = nil
	next := uint64(0)
	for _, rows := range again {
		s.skip(next, rows.first)
		next = rows.positions().To
		s.queue.again = append(s.queue.again, rows)
	}
	end, isQueued := s.queue.firstPosition()
	if !isQueued {
		end = s.nextPosition
	}
	s.skip(next, end)
	s.queue.again = append(s.queue.again, discards...)
}

func (s *state) skip(from, to uint64) {
	if from < to {
		s.queue.again = append(s.queue.again, &skipOp{windrow.Positions{From: from, To: to}})
	}
}

// wroteAgain: rows are in the own lane again.
func (s *state) wroteAgain(again *againOp) {
	if batch := s.batches[again.batch]; again.isBatch && batch != nil {
		batch.isRecorded = true
	}
}
