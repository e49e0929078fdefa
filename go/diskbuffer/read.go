package diskbuffer

import (
	"errors"
	"fmt"
	"os"

	windrow "windrow.dev/go"
)

// reading says where to read a batch's rows. It is made under the log's lock and used without it: segments with
// rows that are not done are not deleted meanwhile.
type reading struct {
	parts []part
	first uint64
	rows  uint64
	bytes int64
	// recorded is the number of the seal or split that made the batch.
	recorded uint64
	// isSuspect: something in its segments is lost, perhaps some of its rows.
	isSuspect bool
	// name is for complaints.
	name string
}

type part struct {
	segment   uint64
	file      *os.File
	checksums checksums
	start     int64
	limit     int64
}

func (l *log) reading(id windrow.BatchID) (reading, error) {
	found, isThere := l.batches[id]
	if !isThere {
		return reading{}, windrow.ErrUnknownBatch
	}
	plan := reading{first: found.first, rows: found.rows, bytes: found.bytes, recorded: found.recorded, name: l.folder.path}
	for _, segment := range l.segments {
		isFirst := segment.number == found.place.segment
		if segment.number < found.place.segment || !isFirst && segment.from >= found.end() {
			continue
		}
		start := int64(segmentHeaderBytes)
		if isFirst {
			start = found.place.offset
		}
		plan.isSuspect = plan.isSuspect || segment.isDamaged
		plan.parts = append(plan.parts, part{segment.number, segment.file, segment.checksums, start, segment.bytes})
	}
	return plan, nil
}

func (r reading) read() (windrow.Rows, error) {
	end := r.first + r.rows
	out := windrow.Rows{Lengths: make([]uint32, 0, min(r.rows, 1<<20)), Bytes: make([]byte, 0, min(r.bytes, 64<<20))}
	next := r.first
	for _, part := range r.parts {
		scanner := newScanner(part.file, part.checksums, part.start, part.limit)
		for next < end {
			found, isThere, err := scanner.next()
			if err != nil {
				return out, err
			}
			if !isThere {
				break
			}
			position, rows := found.header.position, uint64(found.header.rows)
			if found.header.kind != kindRows || position+rows <= next {
				continue
			}
			if position > next {
				return out, r.damaged()
			}
			to := min(end-position, rows)
			pushRows(&out, found.header.rows, scanner.payload, int(next-position), int(to))
			next = position + to
		}
	}
	if next != end {
		return out, r.damaged()
	}
	return out, nil
}

func (r reading) damaged() error {
	return fmt.Errorf("%w: %s: rows of a batch can't be read any more", windrow.ErrDamaged, r.name)
}

func isDamage(err error) bool { return errors.Is(err, windrow.ErrDamaged) }
