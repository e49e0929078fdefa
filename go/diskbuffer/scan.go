package diskbuffer

import (
	"errors"
	"io"
	"slices"
)

// span is bytes of a file, from the first to behind the last.
type span struct{ from, to int64 }

// found is a sound record.
type found struct {
	offset int64
	header recordHeader
}

// scanner reads a segment's records, one after the other, and finds the next sound one behind what is none.
type scanner struct {
	window    window
	checksums checksums
	offset    int64
	// limit: no record reaches beyond.
	limit int64
	// payload of the record that was found last, until the next one is looked for.
	payload []byte
	// damage is what is no record and has a sound one behind it.
	damage []span
	// tail is what is no record and has none behind it, if it isn't all zeros.
	tail *span
	// end is where the last sound record ends.
	end int64
}

func newScanner(file io.ReaderAt, checksums checksums, start, limit int64) *scanner {
	return &scanner{window: window{file: file}, checksums: checksums, offset: start, limit: limit, end: start}
}

// next gives the next sound record. An error is the disk's.
func (s *scanner) next() (found, bool, error) {
	lostFrom := s.offset
	hasOtherThanZeros := false
	for {
		head, err := s.window.get(s.offset, recordHeaderBytes, s.limit)
		if err != nil {
			return found{}, false, err
		}
		if head == nil {
			break
		}
		isZero := little.Uint64(head) == 0
		step := int64(8)
		if header, isHeader := s.checksums.decode(head); isHeader {
			// A header that is sound tells how long its record is, also when the rest of it isn't.
			step = recordBytes(int64(header.payloadBytes))
			isSound, err := s.isSound(header)
			if err != nil {
				return found{}, false, err
			}
			if isSound {
				return s.take(header, lostFrom, step), true, nil
			}
		}
		hasOtherThanZeros = hasOtherThanZeros || !isZero
		s.offset += step
		if isZero {
			s.offset += s.window.zerosAt(s.offset, s.limit)
		}
	}
	return found{}, false, s.finish(lostFrom, hasOtherThanZeros)
}

func (s *scanner) take(header recordHeader, lostFrom, step int64) found {
	taken := found{s.offset, header}
	if lostFrom < s.offset {
		s.damage = append(s.damage, span{lostFrom, s.offset})
	}
	s.offset += step
	s.end = s.offset
	return taken
}

func (s *scanner) finish(lostFrom int64, hasOtherThanZeros bool) error {
	// These bytes are too few for a record's header.
	rest, err := s.window.get(s.offset, max(s.limit-s.offset, 0), s.limit)
	if err != nil {
		return err
	}
	hasOtherThanZeros = hasOtherThanZeros || slices.ContainsFunc(rest, func(b byte) bool { return b != 0 })
	if hasOtherThanZeros {
		s.tail = &span{lostFrom, s.limit}
	}
	s.offset = s.limit
	return nil
}

func (s *scanner) isSound(header recordHeader) (bool, error) {
	payload, err := s.window.get(s.offset+recordHeaderBytes, int64(header.payloadBytes), s.limit)
	if err != nil || payload == nil {
		return false, err
	}
	s.payload = payload
	return header.isSound(payload), nil
}

const windowBytes = 256 << 10

// window is a part of a file in memory.
type window struct {
	file  io.ReaderAt
	start int64
	bytes []byte
}

// get gives nil for what reaches beyond the limit, or beyond the file's end.
func (w *window) get(offset, length, limit int64) ([]byte, error) {
	if length > limit-offset {
		return nil, nil
	}
	if offset < w.start || offset+length > w.start+int64(len(w.bytes)) {
		if err := w.fill(offset, length, limit); err != nil {
			return nil, err
		}
	}
	at := offset - w.start
	if at+length > int64(len(w.bytes)) {
		return nil, nil
	}
	return w.bytes[at : at+length : at+length], nil
}

func (w *window) fill(offset, length, limit int64) error {
	wanted := min(limit-offset, max(windowBytes, length))
	w.start = offset
	w.bytes = slices.Grow(w.bytes[:0], int(wanted))[:wanted]
	count, err := w.file.ReadAt(w.bytes, offset)
	w.bytes = w.bytes[:count]
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// zerosAt says how many zeros, in steps of eight, follow in what is in memory.
func (w *window) zerosAt(offset, limit int64) int64 {
	end := min(limit, w.start+int64(len(w.bytes)))
	count := int64(0)
	for at := offset; at >= w.start && at+8 <= end && little.Uint64(w.bytes[at-w.start:]) == 0; at += 8 {
		count += 8
	}
	return count
}
