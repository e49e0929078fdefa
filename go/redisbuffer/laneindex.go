package redisbuffer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	windrow "windrow.dev/go"
)

// recorded is a batch as it is recorded in Redis: its rows, and whether it is done.
type recorded struct {
	rows   windrow.Positions
	isDone bool
}

type namedRecord struct {
	id windrow.BatchID
	recorded
}

// change is what a record script is told.
type change struct {
	writes   []namedRecord
	forgets  []windrow.BatchID
	releases []windrow.Positions
}

func (c change) isEmpty() bool { return len(c.writes)+len(c.forgets)+len(c.releases) == 0 }

// laneIndex is what is known of a lane: its entries, its batches, and so what may be released when a batch is
// done. It does no I/O: it answers with the change to record in Redis.
//
// Rows are numbered through a lane. A batch is a range of them; a half of a batch that was cut may cover a
// part of an entry only. An entry is released when all of its rows are done. Until then the batches that are
// done, and had a part of it, stay recorded as done, or whoever takes the lane over would take those rows for
// unsent ones.
type laneIndex struct {
	// entries stand in the order of their rows.
	entries []indexedEntry
	batches map[windrow.BatchID]recorded
	// done are the ids of batches that are done and recorded.
	done map[windrow.BatchID]struct{}
}

type indexedEntry struct {
	rows     windrow.Positions
	openRows uint64
}

func newLaneIndex() *laneIndex {
	return &laneIndex{batches: map[windrow.BatchID]recorded{}, done: map[windrow.BatchID]struct{}{}}
}

// addEntry may be told of an entry that is there: one that was written again while the rest of its append was
// on its way.
func (l *laneIndex) addEntry(rows windrow.Positions) {
	at, isThere := slices.BinarySearchFunc(l.entries, rows.From, func(entry indexedEntry, from uint64) int {
		return cmp.Compare(entry.rows.From, from)
	})
	if isThere {
		l.entries[at] = indexedEntry{rows, rows.Count()}
		return
	}
	l.entries = slices.Insert(l.entries, at, indexedEntry{rows, rows.Count()})
}

func (l *laneIndex) isEmpty() bool { return len(l.entries) == 0 }

// addRecorded takes a batch as Redis has it recorded: one that is done has its rows closed.
func (l *laneIndex) addRecorded(id windrow.BatchID, batch recorded) {
	if batch.isDone {
		l.closeRows(batch.rows)
		l.done[id] = struct{}{}
	}
	l.batches[id] = batch
}

func (l *laneIndex) seal(id windrow.BatchID, rows windrow.Positions) change {
	l.batches[id] = recorded{rows: rows}
	return change{writes: []namedRecord{{id, l.batches[id]}}}
}

// split: the parent's rows are its children's from now on.
func (l *laneIndex) split(parent windrow.BatchID, children []namedRecord) change {
	delete(l.batches, parent)
	for _, child := range children {
		l.batches[child.id] = child.recorded
	}
	return change{forgets: []windrow.BatchID{parent}, writes: children}
}

// markDone: the batch is stored, or its rows were given back. The change is empty if that is known already.
func (l *laneIndex) markDone(id windrow.BatchID) change {
	batch, isThere := l.batches[id]
	if !isThere || batch.isDone {
		return change{}
	}
	batch.isDone = true
	l.batches[id] = batch
	l.done[id] = struct{}{}
	l.closeRows(batch.rows)
	made := l.tidy()
	if !slices.Contains(made.forgets, id) {
		made.writes = append(made.writes, namedRecord{id, batch})
	}
	return made
}

// tidy says what is released or forgotten without a batch becoming done: a record that was cut short by a
// crash is completed.
func (l *laneIndex) tidy() change {
	var made change
	left := l.entries[:0]
	for _, entry := range l.entries {
		if entry.openRows == 0 {
			made.releases = append(made.releases, entry.rows)
		} else {
			left = append(left, entry)
		}
	}
	l.entries = left
	for id := range l.done {
		if len(l.entriesOf(l.batches[id].rows)) == 0 {
			made.forgets = append(made.forgets, id)
			delete(l.batches, id)
			delete(l.done, id)
		}
	}
	slices.SortFunc(made.forgets, func(a, b windrow.BatchID) int { return bytes.Compare(a[:], b[:]) })
	return made
}

// liveBatches are those that are not done, oldest rows first.
func (l *laneIndex) liveBatches() []windrow.BatchID {
	var live []windrow.BatchID
	for id, batch := range l.batches {
		if !batch.isDone {
			live = append(live, id)
		}
	}
	slices.SortFunc(live, func(a, b windrow.BatchID) int {
		return cmp.Compare(l.batches[a].rows.From, l.batches[b].rows.From)
	})
	return live
}

// unsealed are the rows of entries that no batch has, in order: written, never sealed. Writers of earlier
// releases sealed a part of an entry when a batch became full in it.
func (l *laneIndex) unsealed() []windrow.Positions {
	sealed := make([]windrow.Positions, 0, len(l.batches))
	for _, batch := range l.batches {
		sealed = append(sealed, batch.rows)
	}
	slices.SortFunc(sealed, func(a, b windrow.Positions) int { return cmp.Compare(a.From, b.From) })
	var free []windrow.Positions
	for _, entry := range l.entries {
		at := entry.rows.From
		for len(sealed) > 0 && sealed[0].From < entry.rows.To {
			if at < sealed[0].From {
				free = append(free, windrow.Positions{From: at, To: sealed[0].From})
			}
			at = max(at, sealed[0].To)
			if sealed[0].To > entry.rows.To {
				break
			}
			sealed = sealed[1:]
		}
		if at < entry.rows.To {
			free = append(free, windrow.Positions{From: at, To: entry.rows.To})
		}
	}
	return free
}

// entriesOf gives the entries that a range of rows lies in.
func (l *laneIndex) entriesOf(rows windrow.Positions) []windrow.Positions {
	var found []windrow.Positions
	for _, at := range l.overlapping(rows) {
		found = append(found, l.entries[at].rows)
	}
	return found
}

func (l *laneIndex) overlapping(rows windrow.Positions) []int {
	first, _ := slices.BinarySearchFunc(l.entries, rows.From, func(entry indexedEntry, from uint64) int {
		if entry.rows.To <= from {
			return -1
		}
		return 1
	})
	var found []int
	for at := first; at < len(l.entries) && l.entries[at].rows.From < rows.To; at++ {
		found = append(found, at)
	}
	return found
}

func (l *laneIndex) closeRows(rows windrow.Positions) {
	for _, at := range l.overlapping(rows) {
		entry := &l.entries[at]
		overlap := min(rows.To, entry.rows.To) - max(rows.From, entry.rows.From)
		entry.openRows -= min(overlap, entry.openRows)
	}
}

// fieldOf is the name of an entry's field: its first row and how many it has.
func fieldOf(entry windrow.Positions) string { return fmt.Sprintf("%d:%d", entry.From, entry.Count()) }

func parseField(name string) (windrow.Positions, bool) {
	first, count, isPair := strings.Cut(name, ":")
	from, err := strconv.ParseUint(first, 10, 64)
	rows, countErr := strconv.ParseUint(count, 10, 64)
	if !isPair || err != nil || countErr != nil || rows == 0 || from+rows < from {
		return windrow.Positions{}, false
	}
	return windrow.Positions{From: from, To: from + rows}, true
}

// String is the record in Redis: L live or D done, and the rows.
func (r recorded) String() string {
	letter := 'L'
	if r.isDone {
		letter = 'D'
	}
	return fmt.Sprintf("%c%d-%d", letter, r.rows.From, r.rows.To)
}

func parseRecorded(text string) (recorded, bool) {
	if text == "" || text[0] != 'L' && text[0] != 'D' {
		return recorded{}, false
	}
	from, to, isPair := strings.Cut(text[1:], "-")
	first, err := strconv.ParseUint(from, 10, 64)
	end, endErr := strconv.ParseUint(to, 10, 64)
	if !isPair || err != nil || endErr != nil || first >= end {
		return recorded{}, false
	}
	return recorded{windrow.Positions{From: first, To: end}, text[0] == 'D'}, true
}
