package diskbuffer

import (
	"bytes"
	"hash/crc32"
	"testing"
)

var header = segmentHeader{number: 3, salt: 77, firstPosition: 12, previousEnd: 640, bytes: 4096}

// record is one as it stands in a segment.
func record(kind kind, position uint64, rows uint32, payload []byte) []byte {
	out := make([]byte, recordBytes(int64(len(payload))))
	checksumsOf(header).encode(recordHeader{uint32(len(payload)), crc32.ChecksumIEEE(payload), kind, position, rows}, out)
	copy(out[recordHeaderBytes:], payload)
	return out
}

func TestHeadersAreReadBackAndNoChangedBitPasses(t *testing.T) {
	encoded := header.encode()
	if read, err := decodeSegmentHeader(encoded[:]); err != nil || read != header {
		t.Fatal(read, err)
	}
	sound := record(kindDone, 0, 0, make([]byte, 16))[:recordHeaderBytes]
	for bit := range 8 * segmentHeaderBytes {
		encoded[bit/8] ^= 1 << (bit % 8)
		if _, err := decodeSegmentHeader(encoded[:]); err == nil {
			t.Error(bit)
		}
		encoded[bit/8] ^= 1 << (bit % 8)
	}
	for bit := range 8 * recordHeaderBytes {
		sound[bit/8] ^= 1 << (bit % 8)
		if _, isHeader := checksumsOf(header).decode(sound); isHeader {
			t.Error(bit)
		}
		sound[bit/8] ^= 1 << (bit % 8)
	}
	other := header
	other.salt++
	if _, isHeader := checksumsOf(other).decode(sound); isHeader {
		t.Error("a record of another segment")
	}
}

func TestRowsWhoseLengthsDoNotAddUpAreNone(t *testing.T) {
	payload := []byte{1, 0, 0, 0, 2, 0, 0, 0, 'a', 'b', 'c'}
	if !areRows(2, payload) || areRows(2, payload[:10]) || areRows(1, payload) || areRows(0, nil) || areRows(9, payload) {
		t.Fatal("rows are told from what is none")
	}
}

// FuzzScan reads records from whatever bytes there are: those that were written are found behind any damage.
func FuzzScan(f *testing.F) {
	rows := record(kindRows, 12, 2, []byte{1, 0, 0, 0, 2, 0, 0, 0, 'a', 'b', 'c'})
	f.Add(rows, uint16(0))
	f.Add(append(bytes.Repeat([]byte{0}, 64), rows...), uint16(7))
	f.Add([]byte("no record at all"), uint16(100))
	f.Fuzz(func(t *testing.T, before []byte, cut uint16) {
		before = before[:len(before)/8*8]
		whole := append(bytes.Clone(before), rows...)
		if int(cut) < len(rows) {
			whole = whole[:len(whole)-int(cut)]
		}
		scanner := newScanner(bytes.NewReader(whole), checksumsOf(header), 0, int64(len(whole)))
		count, end := 0, int64(0)
		for {
			found, isThere, err := scanner.next()
			if err != nil {
				t.Fatal(err)
			}
			if !isThere {
				break
			}
			if found.offset < end || scanner.end > roundUp(int64(len(whole)), 8) {
				t.Fatal("records overlap, or reach beyond the end")
			}
			count, end = count+1, scanner.end
		}
		if count == 0 && cut == 0 && !hasHeader(before) {
			t.Fatal("a sound record was not found")
		}
	})
}

// hasHeader says whether a record seems to begin somewhere: what it says of its length hides what follows.
func hasHeader(bytes []byte) bool {
	for at := 0; at+recordHeaderBytes <= len(bytes); at += 8 {
		if _, isHeader := checksumsOf(header).decode(bytes[at:]); isHeader {
			return true
		}
	}
	return false
}
