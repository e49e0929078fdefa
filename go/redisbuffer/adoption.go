package redisbuffer

import (
	"cmp"
	"slices"

	windrow "windrow.dev/go"
)

// Lanes of writers that are gone: taken over with the batches that they had, under the same ids, and the rows
// that they had not made batches of.

// adoptAll takes over every lane of the same table whose owner is dead, or has been silent for longer than
// its lease.
func (b *buffer) adoptAll(link *link) error {
	lanes, err := link.survey(b.bucket)
	if err != nil {
		return err
	}
	for _, surveyed := range lanes {
		dead := isDead(surveyed.process)
		isLeft := dead || surveyed.leaseLeftMS <= 0
		if isLeft && surveyed.owner != b.owner && surveyed.destination.IsSameTable(b.destination) {
			if err := b.adopt(link, surveyed, dead); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *buffer) adopt(link *link, surveyed surveyed, isDead bool) error {
	lane := b.bucket.lane(surveyed.name, b.owner)
	replies, err := link.talk(b.bucket, func(p *pipeline) { p.adopt(lane, surveyed.owner, b.process, isDead) })
	if err != nil {
		return err
	}
	items, err := listOf(replies[0])
	if err != nil || len(items) < 2 || textOf(items[0]) != "OK" {
		// Another one was faster, or its owner has just said that it lives.
		return nil
	}
	serial, err := parsedNumber(textOf(items[1]))
	if err != nil {
		serial = int64(0)
	}
	contents, err := link.contents(b.bucket, lane)
	if err != nil {
		return err
	}
	adopted := &laneState{lane: lane, index: newLaneIndex(), serial: uint64(serial.(int64))}
	if !isSame(surveyed.destination, *b.destination) {
		adopted.destination = &surveyed.destination
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.enter(adopted, contents)
	return nil
}

func isSame(a, b windrow.Destination) bool {
	return a.IsSameTable(&b) && slices.Equal(a.Columns, b.Columns) && slices.Equal(a.Types, b.Types)
}

// enter enters a lane that was adopted: its batches become ours.
func (s *state) enter(adopted *laneState, contents contents) {
	sizes := map[uint64]int64{}
	slices.SortFunc(contents.entries, func(a, b sizedEntry) int { return cmp.Compare(a.rows.From, b.rows.From) })
	for _, entry := range contents.entries {
		adopted.index.addEntry(entry.rows)
		sizes[entry.rows.From] = entry.bytes
	}
	for id, batch := range contents.batches {
		adopted.index.addRecorded(id, batch)
	}
	s.found.Complaints = append(s.found.Complaints, contents.complaints...)
	number := len(s.lanes)
	s.lanes = append(s.lanes, adopted)
	s.record(number, adopted.index.tidy())
	for _, id := range adopted.index.liveBatches() {
		s.offer(number, id, true)
	}
	for _, rows := range s.grouped(adopted.index.unsealed(), sizes) {
		id := windrow.NewBatchID()
		s.record(number, adopted.index.seal(id, rows))
		s.offer(number, id, false)
	}
}

// grouped joins neighbours to batches as large as they may be.
func (s *state) grouped(entries []windrow.Positions, sizes map[uint64]int64) []windrow.Positions {
	var groups []windrow.Positions
	sum := int64(0)
	for _, entry := range entries {
		size := sizes[entry.From]
		if last := len(groups) - 1; last >= 0 && groups[last].To == entry.From &&
			entry.To-groups[last].From <= uint64(s.limits.Rows) && sum+size <= int64(s.limits.Bytes) {
			groups[last].To = entry.To
			sum += size
			continue
		}
		groups = append(groups, entry)
		sum = size
	}
	return groups
}

func (s *state) offer(lane int, id windrow.BatchID, isRecorded bool) {
	members := s.lanes[lane].index.batches[id].rows
	sealed := windrow.Sealed{ID: id, Rows: members.Count(), Destination: s.lanes[lane].destination}
	s.batches[id] = &batch{lane: lane, sealed: sealed, members: members, isRecorded: isRecorded}
	s.found.Batches = append(s.found.Batches, sealed)
}
