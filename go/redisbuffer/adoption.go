package redisbuffer

import (
	"cmp"
	"slices"

	windrow "windrow.dev/go"
)

// Lanes of writers that are gone: taken over with the batches that they had, under the same ids, and the rows
// that they had not made batches of.

// adoptAll takes over every lane of the same table whose owner is dead, or has been silent for longer than
// its lease; also one that is ours already and that we don't have: the connection broke before its contents
// were read.
//
// Not one that we have and another had since, who is gone as well: what we have still to say of it would be
// taken as said of what it is now. First we have to hear that it was lost.
func (b *buffer) adoptAll(link *link) error {
	lanes, err := link.survey(b.bucket)
	if err != nil {
		return err
	}
	for _, surveyed := range lanes {
		isOurs := surveyed.owner == b.owner
		dead := isOurs || isDead(surveyed.process)
		isLeft := dead || surveyed.leaseLeftMS <= 0
		if isLeft && !b.hasLane(surveyed.name) && surveyed.destination.IsSameTable(b.destination) {
			if err := b.adopt(link, surveyed, dead); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *buffer) hasLane(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.hasLane(name)
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
	s.sealUnsealed(number, sizes)
}

// sealUnsealed joins neighbours to batches as large as they may be. They are recorded at once: a writer of an
// earlier release, if it is the next, overlooks rows of an entry of which others are recorded.
func (s *state) sealUnsealed(lane int, sizes map[uint64]int64) {
	index := s.lanes[lane].index
	var made change
	for _, rows := range s.grouped(index, sizes) {
		made.writes = append(made.writes, index.seal(windrow.NewBatchID(), rows).writes...)
	}
	s.record(lane, made)
	for _, write := range made.writes {
		s.offer(lane, write.id, false)
	}
}

func (s *state) grouped(index *laneIndex, sizes map[uint64]int64) []windrow.Positions {
	var groups []windrow.Positions
	sum := int64(0)
	for _, rows := range index.unsealed() {
		entry := index.entriesOf(rows)[0]
		size := sizes[entry.From] / int64(entry.Count()) * int64(rows.Count())
		if last := len(groups) - 1; last >= 0 && groups[last].To == rows.From &&
			rows.To-groups[last].From <= uint64(s.limits.Rows) && sum+size <= int64(s.limits.Bytes) {
			groups[last].To = rows.To
			sum += size
			continue
		}
		groups = append(groups, rows)
		sum = size
	}
	return groups
}

// offer: a batch that was given up to another process, and comes back when that has died, is under way here
// still.
func (s *state) offer(lane int, id windrow.BatchID, isRecorded bool) {
	if known := s.batches[id]; known != nil {
		known.lane = lane
		return
	}
	members := s.lanes[lane].index.batches[id].rows
	sealed := windrow.Sealed{ID: id, Rows: members.Count(), Destination: s.lanes[lane].destination}
	s.batches[id] = &batch{lane: lane, sealed: sealed, members: members, isRecorded: isRecorded}
	s.found.Batches = append(s.found.Batches, sealed)
}
