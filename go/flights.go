package windrow

import (
	"cmp"
	"slices"
	"time"
)

// flights are batches whose members are fixed, on their way to an end.
type flights struct {
	sealed uint64
	// line has them in the order in which they were sealed.
	line []*flight
	byID map[BatchID]*flight
	// shares counts those that are sent, or keep their share while they wait.
	shares int
	rows   uint64
}

// flight is one batch. Where it stands in line is the number of its seal, then its first row in what was
// sealed: so the pieces of a batch have its place.
type flight struct {
	Sealed
	number uint64
	row    uint64

	stage  stage
	until  time.Time
	failed int
	// firstFailed is when the first attempt ended.
	firstFailed time.Time
}

type stage int

const (
	stageReady stage = iota
	stageSent
	// stageWaiting keeps its share of what may be in flight.
	stageWaiting
	// stageSetAside doesn't: what is refused may be so for ever, and must not keep others from being sent.
	stageSetAside
)

func (s stage) hasShare() bool { return s == stageSent || s == stageWaiting }

func (s stage) waits() bool { return s == stageWaiting || s == stageSetAside }

func (f *flights) push(sealed Sealed) {
	f.sealed++
	f.insert(&flight{Sealed: sealed, number: f.sealed})
}

func (f *flights) insert(added *flight) {
	at, _ := slices.BinarySearchFunc(f.line, added, inLine)
	f.line = slices.Insert(f.line, at, added)
	f.byID[added.ID] = added
	f.rows += added.Rows
}

func inLine(a, b *flight) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.row, b.row))
}

func (f *flights) remove(removed *flight) {
	f.setStage(removed, stageReady, time.Time{})
	at, isThere := slices.BinarySearchFunc(f.line, removed, inLine)
	if isThere {
		f.line = slices.Delete(f.line, at, at+1)
	}
	delete(f.byID, removed.ID)
	f.rows -= removed.Rows
}

// replace puts the pieces of a batch in its place.
func (f *flights) replace(parent *flight, pieces []Sealed) {
	f.remove(parent)
	row := parent.row
	for _, piece := range pieces {
		f.insert(&flight{Sealed: piece, number: parent.number, row: row})
		row += piece.Rows
	}
}

func (f *flights) setStage(changed *flight, to stage, until time.Time) {
	if changed.stage.hasShare() {
		f.shares--
	}
	if to.hasShare() {
		f.shares++
	}
	changed.stage, changed.until = to, until
}

// wake makes those ready whose time has come, and says when the next one's will; zero if none waits.
func (f *flights) wake(now time.Time) time.Time {
	var next time.Time
	for _, waiting := range f.line {
		switch {
		case !waiting.stage.waits():
		case !waiting.until.After(now):
			f.setStage(waiting, stageReady, time.Time{})
		case next.IsZero() || waiting.until.Before(next):
			next = waiting.until
		}
	}
	return next
}

// ready gives the first in line that may be sent now.
func (f *flights) ready(ordered bool, maxInFlight int) *flight {
	if !ordered && f.shares >= maxInFlight {
		return nil
	}
	for _, candidate := range f.line {
		if candidate.stage == stageReady {
			return candidate
		}
		if ordered {
			return nil
		}
	}
	return nil
}
