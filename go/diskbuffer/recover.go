package diskbuffer

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sort"

	windrow "windrow.dev/go"
)

// What a dead writer has left in its log, from the bytes of its segments.
//
// Every sound record counts, also behind a damaged stretch. What is no record and stands at the very end is a
// torn tail: an append that was under way when the writer died, or, after a loss of power, pages that were
// not written yet; nothing that was promised is in it. Anything else that is no record is damage. It is
// counted and complained of, and its segment is kept aside when it is done with. An error of the disk is
// neither: the log is left alone, and tried again.
//
// A batch whose rows aren't all there can't be sent under its id, which stands for other rows: what is there
// goes into new batches. But where the log's first segments have been deleted, the batches that began in them
// were done.

// recovery is what is read so far.
type recovery struct {
	folder   *folder
	report   *windrow.LeftOvers
	segments []*segment
	runs     runs
	// nextPosition is where the next row should be, if that is known.
	nextPosition uint64
	isKnown      bool
	// sealed are batches that are neither done nor cut, done those that are.
	sealed      map[windrow.BatchID]windrow.Positions
	done        []windrow.Positions
	destination *windrow.Destination
	// isClosed: the log was closed, and its end is no torn tail.
	isClosed bool
	// end is where the records of the latest segment end, and tail something that is no record and follows.
	end  int64
	tail *span
}

// recoverLog reads a log whose lock we have. It gives nil if nothing in it needs to be kept, and it is
// removed.
func recoverLog(folder *folder, limits limits, report *windrow.LeftOvers) (*log, error) {
	numbers, err := folder.segments()
	if err != nil {
		return nil, err
	}
	reading := &recovery{folder: folder, report: report, sealed: map[windrow.BatchID]windrow.Positions{}}
	nextNumber := uint64(0)
	for _, number := range numbers {
		if err := reading.segment(number); err != nil {
			return nil, err
		}
		nextNumber = number + 1
	}
	reading.endOfLog()
	if reading.destination == nil {
		if err := reading.withoutDestination(); err != nil {
			return nil, err
		}
		folder.remove()
		return nil, nil
	}
	recovered := newLog(folder, reading.destination, limits)
	recovered.nextNumber = nextNumber
	reading.fill(recovered)
	if err := recovered.sealAll(); err != nil {
		return nil, err
	}
	if recovered.isDone() {
		recovered.remove()
		return nil, nil
	}
	return recovered, nil
}

// sealAll makes batches of the rows that were in none.
func (l *log) sealAll() error {
	for {
		sealed, err := l.seal()
		if err != nil {
			l.endActive()
			return err
		}
		if sealed == nil {
			return nil
		}
	}
}

func (r *recovery) segment(number uint64) error {
	path := r.folder.segmentPath(number)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	header, length, err := readHeader(file, number)
	if err != nil {
		_ = file.Close()
		return r.noSegment(number, path, length, err)
	}
	r.endOfPrevious(header)
	read := &segment{
		number: number, path: path, file: file, checksums: checksumsOf(header), bytes: length,
		from: header.firstPosition, to: header.firstPosition,
	}
	r.expect(read, header.firstPosition, 0)
	if err := r.records(read); err != nil {
		return err
	}
	if uint64(length) < header.bytes {
		r.damage(read, span{length, int64(header.bytes)}, "the file is too short")
	}
	r.segments = append(r.segments, read)
	return nil
}

// noSegment is for a file whose header is none.
func (r *recovery) noSegment(number uint64, path string, length int64, err error) error {
	switch err {
	case errUnwritten:
		// Its room was taken, and nothing was written to it.
		return os.Remove(path)
	case errHeader:
		r.damage(&segment{number: number}, span{0, length}, "the segment can't be read")
		return r.folder.keepAside(path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (r *recovery) records(read *segment) error {
	scanner := newScanner(read.file, read.checksums, segmentHeaderBytes, read.bytes)
	for {
		found, isThere, err := scanner.next()
		if err != nil {
			return err
		}
		if !isThere {
			break
		}
		makesSense := false
		if found.header.kind == kindRows {
			makesSense = r.rows(read, found)
		} else {
			makesSense = r.control(found.header.kind, scanner.payload)
		}
		if !makesSense {
			r.damage(read, span{found.offset, scanner.end}, "a record contradicts others")
		}
	}
	for _, bytes := range scanner.damage {
		r.damage(read, bytes, "what is written there is no record")
	}
	r.end, r.tail = scanner.end, scanner.tail
	return nil
}

func (r *recovery) rows(read *segment, found found) bool {
	position, end := found.header.position, found.header.position+uint64(found.header.rows)
	if end < position || r.isKnown && position < r.nextPosition {
		return false
	}
	r.expect(read, position, found.offset)
	r.runs.push(location{read.number, found.offset}, found.header)
	r.nextPosition = end
	read.to = end
	return true
}

// expect: the next row is at this position, or rows are missing.
func (r *recovery) expect(read *segment, position uint64, offset int64) {
	if r.isKnown && position > r.nextPosition {
		r.damage(read, span{offset, offset}, fmt.Sprintf("%d rows before are lost", position-r.nextPosition))
	}
	r.nextPosition = max(r.nextPosition, position)
	r.isKnown = true
}

func (r *recovery) control(kind kind, payload []byte) bool {
	switch kind {
	case kindDestination:
		read := new(windrow.Destination)
		if read.UnmarshalBinary(payload) != nil {
			return false
		}
		if r.destination == nil {
			r.destination = read
		}
		return true
	case kindClosed:
		r.isClosed = true
		return true
	case kindDone:
		id, isThere := readID(payload)
		if rows, isSealed := r.sealed[id]; isSealed {
			r.done = append(r.done, rows)
			delete(r.sealed, id)
		}
		return isThere
	case kindSeal:
		return r.batches(payload)
	case kindSplit:
		id, isThere := readID(payload)
		delete(r.sealed, id)
		return isThere && r.batches(payload[len(id):])
	}
	return false
}

func (r *recovery) batches(payload []byte) bool {
	all, makeSense := readMembers(payload)
	for _, members := range all {
		r.sealed[members.id] = members.rows
	}
	return makeSense
}

// endOfPrevious: a segment is only left behind when it is full, so its end is known. A new life of the log
// says nothing about what it has found.
func (r *recovery) endOfPrevious(header segmentHeader) {
	tail := r.tail
	r.tail = nil
	if len(r.segments) == 0 {
		return
	}
	previous := r.segments[len(r.segments)-1]
	isShort := previous.number+1 == header.number && header.previousEnd > uint64(r.end)
	if !isShort && (tail == nil || header.previousEnd == 0) {
		return
	}
	if tail == nil {
		tail = &span{r.end, int64(header.previousEnd)}
	}
	r.damage(previous, *tail, "records at its end can't be read")
}

func (r *recovery) endOfLog() {
	if r.tail != nil && r.isClosed && len(r.segments) > 0 {
		last := r.segments[len(r.segments)-1]
		r.damage(last, *r.tail, "there is something behind the end of a closed log")
	}
}

func (r *recovery) damage(in *segment, bytes span, what string) {
	in.isDamaged = true
	length := max(bytes.to-bytes.from, 0)
	r.report.DamagedBytes += uint64(length)
	r.complain("%s at offset %d, %d bytes: %s", r.folder.segmentPath(in.number), bytes.from, length, what)
}

func (r *recovery) complain(form string, values ...any) {
	r.report.Complaints = append(r.report.Complaints, fmt.Sprintf(form, values...))
}

// withoutDestination: rows of which nobody knows where they should go can't be sent. Without rows there is
// nothing to keep.
func (r *recovery) withoutDestination() error {
	for _, read := range r.segments {
		remove := os.Remove
		if read.isDamaged || len(r.runs) > 0 {
			remove = r.folder.keepAside
		}
		if err := remove(read.path); err != nil {
			return err
		}
	}
	if len(r.runs) > 0 {
		r.complain("%s: the table of its rows can't be read", r.folder.path)
	}
	return nil
}

// use is what a range of rows belongs to: a batch, one that is done, or none.
type use struct {
	rows   windrow.Positions
	id     windrow.BatchID
	isDone bool
	isOpen bool
}

// fill gives the log what was found.
func (r *recovery) fill(to *log) {
	logFrom := uint64(0)
	if len(r.segments) > 0 {
		logFrom = r.segments[0].from
	}
	to.segments = r.segments
	for _, read := range r.segments {
		to.diskBytes += read.bytes
	}
	to.nextPosition = max(r.nextPosition, logFrom)
	uses := r.uses(logFrom)
	for _, run := range r.runs {
		for _, piece := range pieces(run, uses) {
			r.enter(to, run, piece)
		}
	}
}

func (r *recovery) enter(to *log, run group, piece use) {
	if piece.isDone {
		return
	}
	count := piece.rows.Count()
	bytes := run.bytes / int64(run.rows) * int64(count)
	if piece.isOpen {
		to.groups.push(group{run.place, piece.rows.From, count, bytes})
	} else {
		entered, isThere := to.batches[piece.id]
		if !isThere {
			entered.group = group{place: run.place, first: piece.rows.From}
		}
		entered.rows += count
		entered.bytes += bytes
		to.batches[piece.id] = entered
	}
	for _, read := range r.segments {
		if read.number == run.place.segment {
			read.undone += count
		}
	}
}

// uses says what each range of rows belongs to, in order.
func (r *recovery) uses(logFrom uint64) []use {
	var all []use
	for _, rows := range r.done {
		all = append(all, use{rows: rows, isDone: true})
	}
	for id, rows := range r.sealed {
		switch present := r.present(rows); {
		case rows.From < logFrom:
			all = append(all, use{rows: rows, isDone: true})
		case present == rows.Count():
			all = append(all, use{rows: rows, id: id})
		case present > 0:
			r.complain("batch %s: only %d of its rows are there, they go into new batches", id, present)
		}
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Compare(a.rows.From, b.rows.From) })
	apart := all[:0]
	end := uint64(0)
	for _, next := range all {
		if next.rows.From < end {
			r.complain("a batch of rows %d to %d overlaps another", next.rows.From, next.rows.To)
			continue
		}
		end = next.rows.To
		apart = append(apart, next)
	}
	return apart
}

// present says how many of these rows were found.
func (r *recovery) present(rows windrow.Positions) uint64 {
	start := sort.Search(len(r.runs), func(index int) bool { return r.runs[index].end() > rows.From })
	count := uint64(0)
	for _, run := range r.runs[start:] {
		if run.first >= rows.To {
			break
		}
		count += min(run.end(), rows.To) - max(run.first, rows.From)
	}
	return count
}

// pieces are a run's rows, by what they belong to.
func pieces(run group, uses []use) []use {
	var all []use
	next := sort.Search(len(uses), func(index int) bool { return uses[index].rows.To > run.first })
	for at := run.first; at < run.end(); {
		piece := use{isOpen: true}
		to := run.end()
		if next < len(uses) && uses[next].rows.From <= at {
			piece = uses[next]
			to = min(to, piece.rows.To)
			next++
		} else if next < len(uses) {
			to = min(to, uses[next].rows.From)
		}
		piece.rows = windrow.Positions{From: at, To: to}
		all = append(all, piece)
		at = to
	}
	return all
}
