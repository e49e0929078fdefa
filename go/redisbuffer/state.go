package redisbuffer

import (
	"slices"
	"time"

	windrow "windrow.dev/go"
)

// maxEntryBytes: an entry is no larger than this unless a single row is. It is small enough to go between
// others', and large enough to cost nothing.
const maxEntryBytes = 1 << 20

// piece is some rows of this writer, by the position of the first.
type piece struct {
	first uint64
	rows  windrow.Rows
}

func (p piece) positions() windrow.Positions {
	return windrow.Positions{From: p.first, To: p.first + uint64(p.rows.Count())}
}

type laneState struct {
	lane   lane
	index  *laneIndex
	serial uint64
	// isGone: somebody else has it, or it is empty and was left.
	isGone      bool
	destination *windrow.Destination
}

type batch struct {
	lane   int
	sealed windrow.Sealed
	// members are its rows' numbers in the lane.
	members windrow.Positions
	// rows of an adopted batch are there, or an error, as soon as it was read.
	rows       windrow.Rows
	hasRows    bool
	err        error
	isRecorded bool
	isAskedFor bool
}

// givenAway is rows that another process took while this one was thought dead.
type givenAway struct {
	lane lane
	rows []heldRows
}

type heldRows struct {
	positions windrow.Positions
	bytes     int64
}

// state is what a buffer knows, under one lock: rows on their way, rows that wait, batches, lanes. It does no
// I/O.
//
// Rows go through: pending (queued, perhaps sent, not confirmed), half (a piece of an append of which
// the rest is not confirmed), waiting (kept), sealed (in a batch; its record is queued). A batch is made of
// whole entries: a writer of an earlier release that takes the lane over looks only for entries of which no
// batch has any row.
type state struct {
	limits       windrow.BatchLimits
	nextPosition uint64
	queue        queue
	// isFull: the bucket had no room when it was asked last.
	isFull       bool
	half         []piece
	waiting      []piece
	waitingRows  uint64
	waitingBytes int64
	// own is the lane of this writer's own rows.
	own       int
	lanes     []*laneState
	batches   map[windrow.BatchID]*batch
	givenAway []givenAway
	found     windrow.LeftOvers
	isClosed  bool
}

// append queues rows, with others if the last entry has not been sent. It answers the position of the first.
func (s *state) append(rows windrow.Rows, deadline time.Time) uint64 {
	first := s.nextPosition
	s.nextPosition += uint64(rows.Count())
	if s.joined(rows) {
		return first
	}
	position := first
	for rows.Count() > 0 {
		count := rows.Fitting(s.limits.Rows, min(s.limits.Bytes, maxEntryBytes), 1)
		hasMore := count < rows.Count()
		added := piece{position, rows.Part(0, count).Clone()}
		s.queue.rows = append(s.queue.rows, &appendOp{piece: added, deadline: deadline, hasMore: hasMore})
		rows = rows.Part(count, rows.Count())
		position += uint64(count)
	}
	return first
}

func (s *state) joined(rows windrow.Rows) bool {
	if len(s.queue.rows) == 0 {
		return false
	}
	last, isAppend := s.queue.rows[len(s.queue.rows)-1].(*appendOp)
	if !isAppend || last.wasSent || last.rows.Count()+rows.Count() > s.limits.Rows ||
		len(last.rows.Bytes)+len(rows.Bytes) > min(s.limits.Bytes, maxEntryBytes) {
		return false
	}
	push(&last.rows, rows)
	return true
}

func push(to *windrow.Rows, rows windrow.Rows) {
	to.Bytes = append(to.Bytes, rows.Bytes...)
	to.Lengths = append(to.Lengths, rows.Lengths...)
}

// confirm: a piece is in Redis. With the last one of an append all of its rows are kept: it says before which
// position.
func (s *state) confirm(confirmed *appendOp) (uint64, bool) {
	s.half = append(s.half, confirmed.piece)
	if confirmed.hasMore {
		return 0, false
	}
	before := uint64(0)
	for _, piece := range s.half {
		s.lanes[s.own].index.addEntry(piece.positions())
		s.waitingRows += uint64(piece.rows.Count())
		s.waitingBytes += int64(len(piece.rows.Bytes))
		before = piece.positions().To
	}
	s.waiting = append(s.waiting, s.half...)
	s.half = nil
	return before, true
}

// expire makes withdrawals of appends whose time is over. It gives what is refused by that.
func (s *state) expire(now time.Time) []piece {
	var refused []piece
	kept := make([]op, 0, len(s.queue.rows))
	isInRefused := false
	for _, queued := range s.queue.rows {
		pending, isAppend := queued.(*appendOp)
		if !isAppend {
			kept = append(kept, queued)
			continue
		}
		isRefused := isInRefused || !pending.deadline.After(now)
		isInRefused = isRefused && pending.hasMore
		if !isRefused {
			kept = append(kept, queued)
			continue
		}
		// Those that went before it in the same append lie in Redis.
		for _, piece := range s.half {
			refused = append(refused, piece)
			kept = append(kept, &withdrawOp{piece.positions(), true})
		}
		s.half = nil
		refused = append(refused, pending.piece)
		kept = withWithdrawal(kept, pending.positions(), pending.wasSent)
	}
	s.queue.rows = kept
	return refused
}

// open: where the bucket is full, what waits is as much as there will be. Others wait for the room that it
// takes.
func (s *state) open() windrow.OpenRows {
	byRows := s.waitingRows / uint64(s.limits.Rows)
	byBytes := uint64(s.waitingBytes) / uint64(s.limits.Bytes)
	byRoom := uint64(0)
	if s.isFull && s.waitingRows > 0 {
		byRoom = 1
	}
	return windrow.OpenRows{Rows: s.waitingRows, FullBatches: max(byRows, byBytes, byRoom)}
}

// takeWaiting takes the oldest entries that wait, as many as a batch may have. None is larger than that. Rows
// behind a gap, left by some that were refused, are in another batch.
func (s *state) takeWaiting() (piece, bool) {
	if len(s.waiting) == 0 {
		return piece{}, false
	}
	taken := s.waiting[0]
	used := 1
	for used < len(s.waiting) {
		next := s.waiting[used]
		if next.first != taken.positions().To || taken.rows.Count()+next.rows.Count() > s.limits.Rows ||
			len(taken.rows.Bytes)+len(next.rows.Bytes) > s.limits.Bytes {
			break
		}
		push(&taken.rows, next.rows)
		used++
	}
	s.waiting = slices.Delete(s.waiting, 0, used)
	s.waitingRows -= uint64(taken.rows.Count())
	s.waitingBytes -= int64(len(taken.rows.Bytes))
	return taken, true
}

func (s *state) seal() *windrow.Sealed {
	taken, isThere := s.takeWaiting()
	if !isThere {
		return nil
	}
	sealed := windrow.Sealed{
		ID: windrow.NewBatchID(), Rows: uint64(taken.rows.Count()), Positions: taken.positions(),
		HeldBytes: taken.rows.HeldBytes(),
	}
	s.record(s.own, s.lanes[s.own].index.seal(sealed.ID, taken.positions()))
	s.batches[sealed.ID] = &batch{lane: s.own, sealed: sealed, members: taken.positions(), rows: taken.rows, hasRows: true}
	return &sealed
}

func (s *state) split(id windrow.BatchID, cuts []int) ([]windrow.Sealed, error) {
	parent, isThere := s.batches[id]
	if !isThere {
		return nil, windrow.ErrUnknownBatch
	}
	if s.lanes[parent.lane].isGone {
		return nil, s.leaveWhole(id, parent)
	}
	if !parent.hasRows {
		return nil, windrow.ErrNotYet
	}
	var pieces []windrow.Sealed
	var writes []namedRecord
	start := 0
	for _, end := range append(slices.Clone(cuts), parent.rows.Count()) {
		child := parent.part(start, end)
		writes = append(writes, namedRecord{child.sealed.ID, recorded{rows: child.members}})
		s.batches[child.sealed.ID] = child
		pieces = append(pieces, child.sealed)
		start = end
	}
	delete(s.batches, id)
	s.record(parent.lane, s.lanes[parent.lane].index.split(id, writes))
	return pieces, nil
}

// part is a new batch of some of the rows. Of another process's rows it has no positions and holds nothing.
func (b *batch) part(from, to int) *batch {
	rows := b.rows.Part(from, to)
	sealed := windrow.Sealed{ID: windrow.NewBatchID(), Rows: uint64(rows.Count()), Destination: b.sealed.Destination}
	if b.sealed.Positions.Count() > 0 {
		first := b.sealed.Positions.From
		sealed.Positions = windrow.Positions{From: first + uint64(from), To: first + uint64(to)}
		sealed.HeldBytes = rows.HeldBytes()
	}
	members := windrow.Positions{From: b.members.From + uint64(from), To: b.members.From + uint64(to)}
	return &batch{lane: b.lane, sealed: sealed, members: members, rows: rows, hasRows: true}
}

// load gives a batch's rows, once its record is in Redis. Rows that have to be read are asked for.
func (s *state) load(id windrow.BatchID) (windrow.Rows, error) {
	found, isThere := s.batches[id]
	switch {
	case !isThere:
		return windrow.Rows{}, windrow.ErrUnknownBatch
	case found.err != nil:
		return windrow.Rows{}, found.err
	case found.hasRows && found.isRecorded:
		return found.rows, nil
	case !found.hasRows && !found.isAskedFor:
		found.isAskedFor = true
		s.queue.records = append(s.queue.records, &readOp{id})
	}
	return windrow.Rows{}, windrow.ErrNotYet
}

func (s *state) done(id windrow.BatchID) error {
	ended, isThere := s.batches[id]
	if !isThere {
		return windrow.ErrUnknownBatch
	}
	delete(s.batches, id)
	s.record(ended.lane, s.lanes[ended.lane].index.markDone(id))
	return nil
}

func (s *state) record(lane int, change change) {
	if of := s.lanes[lane]; !change.isEmpty() && !of.isGone {
		of.serial++
		s.queue.records = append(s.queue.records, &recordOp{lane, of.serial, change})
	}
}

func (s *state) recorded(change change) {
	for _, write := range change.writes {
		if found, isThere := s.batches[write.id]; isThere {
			found.isRecorded = true
		}
	}
}
