package diskbuffer

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	windrow "windrow.dev/go"
)

// log is one writer's: its segments, what waits in them, and which batches are not done.
type log struct {
	folder      *folder
	limits      limits
	destination *windrow.Destination
	// described is the destination as records have it.
	described []byte
	// isOwn: it is ours, and not that of a dead writer.
	isOwn bool
	// othersBytes is what else counts for the limit of the disk.
	othersBytes  func() int64
	isClosed     bool
	segments     []*segment
	active       *active
	nextNumber   uint64
	nextPosition uint64
	groups       groups
	batches      map[windrow.BatchID]batch
	diskBytes    int64
	// recorded counts seals and splits.
	recorded uint64
	// names counts those of segments that were made in the folder, syncedNames those that are sure to be there.
	names       uint64
	syncedNames uint64
}

// batch is sealed and not done.
type batch struct {
	group
	heldBytes int64
	// recorded is the number of the seal or split that made it.
	recorded uint64
}

func createLog(folder *folder, destination *windrow.Destination, limits limits) (*log, error) {
	created := newLog(folder, destination, limits)
	created.isOwn = true
	// A folder that can't be written to shows now.
	return created, created.roll(limits.segmentBytes)
}

func newLog(folder *folder, destination *windrow.Destination, limits limits) *log {
	described, _ := destination.MarshalBinary()
	return &log{
		folder: folder, limits: limits, destination: destination, described: described, groups: groups{limits: limits},
		batches: map[windrow.BatchID]batch{},
	}
}

func (l *log) has(id windrow.BatchID) bool {
	_, isThere := l.batches[id]
	return isThere
}

func (l *log) isDone() bool { return len(l.batches) == 0 && l.groups.rows == 0 }

// append takes all of the rows, or none.
func (l *log) append(rows windrow.Rows) (windrow.Appended, error) {
	appended := windrow.Appended{First: l.nextPosition}
	if l.isClosed {
		return appended, windrow.ErrClosed
	}
	if rows.Count() == 0 {
		return appended, nil
	}
	if l.groups.rows == 0 {
		appended.Ready = windrow.ReadyFirstRow
	}
	isOneRecord := rows.Count() == 1 || rows.Count() <= l.limits.batchRows && len(rows.Bytes) <= l.limits.recordBytes()
	hasFilled := false
	if isOneRecord && l.hasRoomFor(rows) {
		hasFilled = l.pushRows(rows)
	} else {
		var err error
		if hasFilled, err = l.appendInParts(rows); err != nil {
			return appended, err
		}
	}
	if hasFilled {
		appended.Ready = windrow.ReadyFull
	}
	return appended, nil
}

// appendInParts takes all segments that are needed before the first record is written.
func (l *log) appendInParts(rows windrow.Rows) (bool, error) {
	records, err := l.cut(rows)
	if err != nil {
		return false, err
	}
	sizes, err := l.makeRoom(records)
	if err != nil {
		return false, err
	}
	blanks, err := l.createBlanks(sizes)
	if err != nil {
		return false, err
	}
	hasFilled := false
	for _, record := range records {
		if !l.hasRoomFor(record) && len(blanks) > 0 {
			l.begin(blanks[0])
			blanks = blanks[1:]
		}
		hasFilled = l.pushRows(record) || hasFilled
	}
	return hasFilled, nil
}

func (l *log) createBlanks(sizes []int64) ([]*blank, error) {
	var blanks []*blank
	for index, size := range sizes {
		made, err := createBlank(l.folder, l.nextNumber+uint64(index), size)
		if err != nil {
			for _, made := range blanks {
				made.discard()
			}
			return nil, err
		}
		blanks = append(blanks, made)
	}
	return blanks, nil
}

func (l *log) cut(rows windrow.Rows) ([]windrow.Rows, error) {
	var records []windrow.Rows
	maxBytes := min(l.limits.maxDiskBytes, maxPayloadBytes-64)
	for rows.Count() > 0 {
		count := rows.Fitting(l.limits.batchRows, l.limits.recordBytes(), 1)
		record := rows.Part(0, count)
		if bytes := rowsPayloadBytes(record); bytes > maxBytes {
			return nil, &windrow.TooLargeError{Bytes: bytes, MaxBytes: maxBytes}
		}
		records = append(records, record)
		rows = rows.Part(count, rows.Count())
	}
	return records, nil
}

// segmentsFor gives the sizes of the new segments that these records need.
func (l *log) segmentsFor(records []windrow.Rows) []int64 {
	reserve := l.limits.reserveBytes()
	overhead := segmentHeaderBytes + recordBytes(int64(len(l.described)))
	room := int64(0)
	if l.active != nil {
		room = l.active.room(reserve)
	}
	var sizes []int64
	for _, record := range records {
		needed := recordBytes(rowsPayloadBytes(record))
		if needed > room {
			size := max(roundUp(overhead+needed+reserve, 4096), l.limits.segmentBytes)
			sizes = append(sizes, size)
			room = size - overhead - reserve
		}
		room -= needed
	}
	return sizes
}

func (l *log) hasRoomFor(rows windrow.Rows) bool {
	return l.active != nil && l.active.room(l.limits.reserveBytes()) >= recordBytes(rowsPayloadBytes(rows))
}

// makeRoom gives the sizes of the new segments that these records need, if there may be so many more.
func (l *log) makeRoom(records []windrow.Rows) ([]int64, error) {
	for {
		sizes := l.segmentsFor(records)
		added := int64(0)
		for _, size := range sizes {
			added += size
		}
		switch {
		case added == 0 || l.diskBytes+l.othersBytes()+added <= l.limits.maxDiskBytes:
			return sizes, nil
		case added > l.limits.maxDiskBytes && (!l.isDone() || l.active == nil):
			return nil, &windrow.TooLargeError{Bytes: added, MaxBytes: l.limits.maxDiskBytes}
		case !l.isDone() || l.active == nil:
			return nil, windrow.ErrFull
		}
		// The segment that is written to holds nothing that anybody needs.
		l.endActive()
		l.release()
	}
}

func (l *log) endActive() {
	if l.active != nil {
		unmap(l.active.mapped)
		l.active = nil
	}
}

func (l *log) pushRows(rows windrow.Rows) bool {
	last := l.segments[len(l.segments)-1]
	count := uint64(rows.Count())
	added := group{location{last.number, l.active.end}, l.nextPosition, count, int64(len(rows.Bytes))}
	l.active.push(newRecord{kindRows, l.nextPosition, uint32(count), rows.Lengths, rows.Bytes})
	l.nextPosition += count
	last.to = l.nextPosition
	last.undone += count
	return l.groups.push(added)
}

// pushControl is for seals and dones: they may go beyond the limit of the disk, since they lead to room.
func (l *log) pushControl(kind kind, payload []byte) error {
	needed := recordBytes(int64(len(payload)))
	if l.active == nil || l.active.room(0) < needed {
		// A dead writer's log needs little.
		bytes := int64(64 << 10)
		if l.isOwn {
			bytes = l.limits.segmentBytes
		}
		if err := l.roll(max(bytes, roundUp(needed+int64(len(l.described))+4096, 4096))); err != nil {
			return err
		}
	}
	l.active.push(newRecord{kind: kind, bytes: payload})
	return nil
}

func (l *log) roll(bytes int64) error {
	made, err := createBlank(l.folder, l.nextNumber, bytes)
	if err == nil {
		l.begin(made)
	}
	return err
}

func (l *log) begin(made *blank) {
	previousEnd := uint64(0)
	if l.active != nil {
		previousEnd = uint64(l.active.end)
		l.segments[len(l.segments)-1].end = l.active.end
		l.endActive()
	}
	begun, active := made.begin(l.nextPosition, previousEnd)
	l.nextNumber = begun.number + 1
	l.diskBytes += begun.bytes
	l.names++
	active.push(newRecord{kind: kindDestination, bytes: l.described})
	l.segments = append(l.segments, begun)
	l.active = active
	l.release()
}

func (l *log) seal() (*windrow.Sealed, error) {
	popped, isThere := l.groups.pop()
	if !isThere {
		return nil, nil
	}
	id := windrow.NewBatchID()
	payload := members{id, windrow.Positions{From: popped.first, To: popped.end()}}.appendTo(nil)
	if err := l.pushControl(kindSeal, payload); err != nil {
		l.groups.putBack(popped)
		return nil, err
	}
	sealed := batch{popped, windrow.HeldBytes(int(popped.bytes), int(popped.rows)), l.countRecorded()}
	l.batches[id] = sealed
	described := l.sealed(id, sealed)
	return &described, nil
}

// countRecorded gives the number of a new seal or split. Those of dead writers' logs need no sync by us.
func (l *log) countRecorded() uint64 {
	if !l.isOwn {
		return 0
	}
	l.recorded++
	return l.recorded
}

func (l *log) sealed(id windrow.BatchID, of batch) windrow.Sealed {
	if !l.isOwn {
		return windrow.Sealed{ID: id, Rows: of.rows, Destination: l.destination}
	}
	positions := windrow.Positions{From: of.first, To: of.end()}
	return windrow.Sealed{ID: id, Rows: of.rows, Positions: positions, HeldBytes: of.heldBytes}
}

// sealedBatches are those of a dead writer's log, in order.
func (l *log) sealedBatches() []windrow.Sealed {
	ids := make([]windrow.BatchID, 0, len(l.batches))
	for id := range l.batches {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b windrow.BatchID) int { return cmp.Compare(l.batches[a].first, l.batches[b].first) })
	all := make([]windrow.Sealed, len(ids))
	for index, id := range ids {
		all[index] = l.sealed(id, l.batches[id])
	}
	return all
}

// split leaves the batch as it is if it can't be recorded.
func (l *log) split(id windrow.BatchID, cuts []int) ([]windrow.Sealed, error) {
	plan, err := l.reading(id)
	if err != nil {
		return nil, err
	}
	rows, err := plan.read()
	if err != nil {
		return nil, err
	}
	parent := l.batches[id]
	payload := appendID(nil, id)
	ids := make([]windrow.BatchID, len(cuts)+1)
	children := make([]batch, len(cuts)+1)
	start := 0
	for index, end := range append(slices.Clone(cuts), rows.Count()) {
		part := rows.Part(start, end)
		first := parent.first + uint64(start)
		ids[index] = windrow.NewBatchID()
		children[index] = batch{group{parent.place, first, uint64(part.Count()), int64(len(part.Bytes))}, part.HeldBytes(), 0}
		payload = members{ids[index], windrow.Positions{From: first, To: children[index].end()}}.appendTo(payload)
		start = end
	}
	if err := l.pushControl(kindSplit, payload); err != nil {
		return nil, err
	}
	recorded := l.countRecorded()
	delete(l.batches, id)
	sealed := make([]windrow.Sealed, len(ids))
	for index, child := range children {
		child.recorded = recorded
		l.batches[ids[index]] = child
		sealed[index] = l.sealed(ids[index], child)
	}
	return sealed, nil
}

func (l *log) done(id windrow.BatchID) error {
	ended := l.batches[id]
	delete(l.batches, id)
	err := l.pushControl(kindDone, appendID(nil, id))
	for _, segment := range l.segments {
		from, to := max(segment.from, ended.first), min(segment.to, ended.end())
		if from < to {
			segment.undone -= min(to-from, segment.undone)
		}
	}
	l.release()
	return err
}

// release deletes segments from the old end, as far as all in them is done.
func (l *log) release() {
	least := 0
	if l.active != nil {
		least = 1
	}
	for len(l.segments) > least && l.segments[0].undone == 0 {
		oldest := l.segments[0]
		var err error
		if oldest.isDamaged {
			err = l.folder.keepAside(oldest.path)
		} else {
			err = os.Remove(oldest.path)
		}
		// What can't be deleted now is tried again with the next one.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		// Its room is free only when it is closed. Nobody reads rows that are done.
		_ = oldest.file.Close()
		l.diskBytes -= oldest.bytes
		l.segments = slices.Delete(l.segments, 0, 1)
	}
}

func (l *log) segmentOf(number uint64) *segment {
	for _, segment := range l.segments {
		if segment.number == number {
			return segment
		}
	}
	return nil
}

// unsynced is what has to be synced so that all that was written before is sure to be there.
func (l *log) unsynced() []unsynced {
	var found []unsynced
	for _, segment := range l.segments {
		if segment.durability != isWhole {
			found = append(found, unsynced{*segment, segment.durability == isDistrusted})
		}
	}
	return found
}

// wasSynced: those that were not written to any more when they were synced need it no more.
func (l *log) wasSynced(synced []unsynced) {
	for _, synced := range synced {
		if segment := l.segmentOf(synced.number); segment != nil && synced.end > 0 {
			segment.durability = isWhole
		}
	}
}

// distrust: a sync of a segment has failed. If it is written to, what comes goes into another one.
func (l *log) distrust(number uint64) error {
	segment := l.segmentOf(number)
	if segment == nil {
		return nil
	}
	segment.durability = isDistrusted
	if segment.end > 0 {
		return nil
	}
	return l.roll(l.limits.segmentBytes)
}

// takeCopy puts a copy, which is synced, in the place of a segment. Who reads the former file still has it.
func (l *log) takeCopy(number uint64, path string, made *os.File) error {
	segment := l.segmentOf(number)
	if err := os.Rename(path, segment.path); err != nil {
		return err
	}
	segment.file, segment.durability = made, isWhole
	l.names++
	return nil
}

// keepAside: something in these segments can't be read any more.
func (l *log) keepAside(plan reading) {
	for _, segment := range l.segments {
		for _, part := range plan.parts {
			segment.isDamaged = segment.isDamaged || part.segment == segment.number
		}
	}
}

// remove takes away the log, all of which is done.
func (l *log) remove() {
	l.endActive()
	l.release()
	l.folder.remove()
}

// close lets go of a dead writer's log; what is not done in it is for the next writer.
func (l *log) close() {
	if l.isDone() {
		l.remove()
		return
	}
	l.letGo()
}

// letGo leaves everything where it is.
func (l *log) letGo() {
	l.endActive()
	for _, segment := range l.segments {
		_ = segment.file.Close()
	}
	l.folder.unlock()
}

// closeOwn: nothing is appended any more, and the lock is given back.
func (l *log) closeOwn() error {
	if l.isClosed {
		return nil
	}
	l.isClosed = true
	if l.isDone() {
		l.remove()
		return nil
	}
	// A log without this record is taken for one of a writer that was killed.
	err := l.pushControl(kindClosed, make([]byte, 8))
	l.letGo()
	// What is reported from now on is another writer's affair.
	clear(l.batches)
	return err
}
