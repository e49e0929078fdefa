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

// An op is something that has to be told to Redis: an *appendOp, *withdrawOp, *recordOp or *readOp.
type op any

type appendOp struct {
	piece
	deadline time.Time
	// hasMore: the rest of the append is in the piece behind it.
	hasMore bool
	// wasSent: it may be in Redis, is not added to any more, and has to be withdrawn before it is refused.
	wasSent bool
}

// withdrawOp is rows that were refused: gone from Redis if they had come there.
type withdrawOp struct {
	rows    windrow.Positions
	wasSent bool
}

type recordOp struct {
	lane   int
	serial uint64
	change change
}

// readOp asks for an adopted batch's rows.
type readOp struct{ id windrow.BatchID }

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
// Rows go through: pending (queued in ops, perhaps sent, not confirmed), half (a piece of an append of which
// the rest is not confirmed), waiting (kept), sealed (in a batch; its record is queued behind it).
type state struct {
	limits       windrow.BatchLimits
	nextPosition uint64
	// ops stand in the order in which they have to happen.
	ops          []op
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

// enterOwn enters a lane that has just been registered as the one of this writer's own rows.
func (s *state) enterOwn(lane lane) {
	s.own = len(s.lanes)
	s.lanes = append(s.lanes, &laneState{lane: lane, index: newLaneIndex()})
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
		s.ops = append(s.ops, &appendOp{piece: added, deadline: deadline, hasMore: hasMore})
		rows = rows.Part(count, rows.Count())
		position += uint64(count)
	}
	return first
}

func (s *state) joined(rows windrow.Rows) bool {
	if len(s.ops) == 0 {
		return false
	}
	last, isAppend := s.ops[len(s.ops)-1].(*appendOp)
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
	kept := make([]op, 0, len(s.ops))
	isInRefused := false
	for _, queued := range s.ops {
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
	s.ops = kept
	return refused
}

// withWithdrawal: rows that were never sent leave nothing to be deleted, so one withdrawal passes over all of
// them, however long Redis is away.
func withWithdrawal(ops []op, rows windrow.Positions, wasSent bool) []op {
	if len(ops) > 0 && !wasSent {
		if last, isOne := ops[len(ops)-1].(*withdrawOp); isOne && !last.wasSent && last.rows.To == rows.From {
			last.rows.To = rows.To
			return ops
		}
	}
	return append(ops, &withdrawOp{rows, wasSent})
}

// nextDeadline is that of the oldest append, or zero.
func (s *state) nextDeadline() time.Time {
	for _, queued := range s.ops {
		if pending, isAppend := queued.(*appendOp); isAppend {
			return pending.deadline
		}
	}
	return time.Time{}
}

func (s *state) open() windrow.OpenRows {
	byRows := s.waitingRows / uint64(s.limits.Rows)
	byBytes := uint64(s.waitingBytes) / uint64(s.limits.Bytes)
	return windrow.OpenRows{Rows: s.waitingRows, FullBatches: max(byRows, byBytes)}
}

// takeWaiting takes the oldest rows that wait, as many as a batch may have. Rows behind a gap, left by some
// that were refused, are in another batch.
func (s *state) takeWaiting() (piece, bool) {
	if len(s.waiting) == 0 {
		return piece{}, false
	}
	taken := piece{first: s.waiting[0].first}
	used := 0
	for used < len(s.waiting) && s.waiting[used].first == taken.positions().To && len(taken.rows.Bytes) < s.limits.Bytes {
		next := &s.waiting[used]
		least := 0
		if taken.rows.Count() == 0 {
			least = 1
		}
		room := max(s.limits.Bytes-len(taken.rows.Bytes), 0)
		count := next.rows.Fitting(s.limits.Rows-taken.rows.Count(), room, least)
		isWhole := count == next.rows.Count()
		if isWhole && taken.rows.Count() == 0 {
			taken = *next
		} else {
			push(&taken.rows, next.rows.Part(0, count))
		}
		if !isWhole {
			*next = piece{next.first + uint64(count), next.rows.Part(count, next.rows.Count())}
			break
		}
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
		s.ops = append(s.ops, &readOp{id})
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
		s.ops = append(s.ops, &recordOp{lane, of.serial, change})
	}
}

func (s *state) recorded(change change) {
	for _, write := range change.writes {
		if found, isThere := s.batches[write.id]; isThere {
			found.isRecorded = true
		}
	}
}

// forgetWaiting takes back what waits and was not sealed, for whoever has it now.
func (s *state) forgetWaiting() []piece {
	forgotten := s.waiting
	s.waiting, s.waitingRows, s.waitingBytes = nil, 0, 0
	return forgotten
}
