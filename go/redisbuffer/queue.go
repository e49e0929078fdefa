package redisbuffer

import (
	"slices"
	"time"

	windrow "windrow.dev/go"
)

const (
	// flightOps and flightBytes bound what one pipeline carries.
	flightOps   = 1024
	flightBytes = 8 << 20
)

// An op is something that has to be told to Redis: an *appendOp, *withdrawOp, *againOp, *skipOp, *discardOp, *recordOp or
// *readOp.
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

// againOp is rows that Redis had confirmed in a lane that was lost before another had it. If they are a batch, it is
// recorded with them.
type againOp struct {
	piece
	batch   windrow.BatchID
	isBatch bool
}

// skipOp is positions of which there are no rows in the lane.
type skipOp struct{ rows windrow.Positions }

// discardOp is a lane whose rows were all written again.
type discardOp struct{ lane int }

type recordOp struct {
	lane   int
	serial uint64
	change change
}

// readOp asks for an adopted batch's rows. It goes alone.
type readOp struct{ id windrow.BatchID }

// queue is what Redis has to be told, and in which order.
//
// Rows of new appends are told in the order of their positions, behind each other. What became of rows that
// Redis has does not wait for them: a record frees the room that they may be waiting for. What is written
// again, in a lane that took the place of a lost one, comes before all else: records are about rows that are
// there.
type queue struct {
	again   []op
	records []op
	// rows has appends and withdrawals.
	rows []op
}

func (q *queue) isEmpty() bool { return len(q.again)+len(q.records)+len(q.rows) == 0 }

// takeFlight takes what goes in the next pipeline. While the bucket is full, one append asks whether it still
// is.
func (q *queue) takeFlight(isFull bool) []op {
	var taken flight
	if len(q.again) > 0 {
		taken.take(&q.again, func(op) bool { return true })
		return taken.ops
	}
	if len(q.records) > 0 && isRead(q.records[0]) {
		taken.ops = []op{q.records[0]}
		q.records = q.records[1:]
		return taken.ops
	}
	taken.take(&q.records, func(queued op) bool { return !isRead(queued) })
	appends := 0
	taken.take(&q.rows, func(queued op) bool {
		if _, isAppend := queued.(*appendOp); isAppend {
			appends++
		}
		return !isFull || appends <= 1
	})
	return taken.ops
}

func isRead(queued op) bool {
	_, is := queued.(*readOp)
	return is
}

type flight struct {
	ops   []op
	bytes int
}

func (f *flight) take(from *[]op, goes func(op) bool) {
	count := 0
	for _, queued := range *from {
		if len(f.ops) >= flightOps || f.bytes >= flightBytes || !goes(queued) {
			break
		}
		switch queued := queued.(type) {
		case *appendOp:
			queued.wasSent = true
			f.bytes += len(queued.rows.Bytes)
		case *againOp:
			f.bytes += len(queued.rows.Bytes)
		case *withdrawOp:
			queued.wasSent = true
		}
		f.ops = append(f.ops, queued)
		count++
	}
	*from = slices.Delete(*from, 0, count)
}

// putBack is for what was not taken: it is the first to be sent again.
func (q *queue) putBack(flight []op) {
	var again, records, rows []op
	for _, queued := range flight {
		switch queued.(type) {
		case *appendOp, *withdrawOp:
			rows = append(rows, queued)
		case *recordOp, *readOp:
			records = append(records, queued)
		default:
			again = append(again, queued)
		}
	}
	q.again, q.records, q.rows = append(again, q.again...), append(records, q.records...), append(rows, q.rows...)
}

// nextDeadline is that of the oldest append, or zero.
func (q *queue) nextDeadline() time.Time {
	for _, queued := range q.rows {
		if pending, isAppend := queued.(*appendOp); isAppend {
			return pending.deadline
		}
	}
	return time.Time{}
}

// firstPosition says where the first of the rows begin that are on their way.
func (q *queue) firstPosition() (uint64, bool) {
	if len(q.rows) == 0 {
		return 0, false
	}
	switch first := q.rows[0].(type) {
	case *appendOp:
		return first.first, true
	case *withdrawOp:
		return first.rows.From, true
	}
	return 0, false
}

// forgetRecords: a lane that is not ours any more hears nothing of us.
func (q *queue) forgetRecords(of int) {
	q.records = slices.DeleteFunc(q.records, isRecordOf(of))
}

// hasRecords says whether Redis has still to be told something of a lane's batches.
func (q *queue) hasRecords(of int) bool {
	return slices.ContainsFunc(q.records, isRecordOf(of))
}

func isRecordOf(lane int) func(op) bool {
	return func(queued op) bool {
		record, isRecord := queued.(*recordOp)
		return isRecord && record.lane == lane
	}
}

func (q *queue) discards(of int) bool {
	return slices.ContainsFunc(q.again, func(queued op) bool {
		discard, isDiscard := queued.(*discardOp)
		return isDiscard && discard.lane == of
	})
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
