package diskbuffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	windrow "windrow.dev/go"
)

// The bytes of segments and records. docs/internals/writer-disk.md describes them; the Rust writer has the
// same.

const (
	magic              = "WINDROWB"
	version            = 1
	segmentHeaderBytes = 64
	recordHeaderBytes  = 32
	membersBytes       = 32
	// maxPayloadBytes is more than any segment holds.
	maxPayloadBytes = 1<<32 - 1
)

var little = binary.LittleEndian

// segmentHeader stands at the beginning of a segment.
type segmentHeader struct {
	number uint64
	// salt is what the checksums of the segment's records begin with: nobody who only chooses rows can write
	// bytes that pass for a record.
	salt uint64
	// firstPosition: all rows before it stand in earlier segments.
	firstPosition uint64
	// previousEnd says how many bytes of the segment before are records.
	previousEnd uint64
	// bytes is what was taken for it on the disk.
	bytes uint64
}

type kind byte

const (
	kindDestination kind = iota + 1
	kindRows
	kindSeal
	kindSplit
	kindDone
	// kindClosed: the log was closed by its writer, and no record is missing behind.
	kindClosed
)

type recordHeader struct {
	payloadBytes uint32
	payloadCRC   uint32
	kind         kind
	// position of the first row; 0 for other kinds.
	position uint64
	// rows says how many; 0 for other kinds.
	rows uint32
}

// members are a batch's id and rows, as seals and splits have them.
type members struct {
	id   windrow.BatchID
	rows windrow.Positions
}

// recordBytes says how much a record takes in a segment.
func recordBytes(payloadBytes int64) int64 { return recordHeaderBytes + roundUp(payloadBytes, 8) }

func rowsPayloadBytes(rows windrow.Rows) int64 { return rows.HeldBytes() }

func (h segmentHeader) encode() [segmentHeaderBytes]byte {
	var out [segmentHeaderBytes]byte
	copy(out[:], magic)
	little.PutUint32(out[8:], version)
	for index, value := range []uint64{h.number, h.salt, h.firstPosition, h.previousEnd, h.bytes} {
		little.PutUint64(out[16+8*index:], value)
	}
	little.PutUint32(out[12:], headerCRC(out[:]))
	return out
}

var (
	// errUnwritten: nothing was ever written to the segment.
	errUnwritten = errors.New("the segment was never written to")
	errHeader    = errors.New("the segment can't be read")
)

// versionError is of a later release.
type versionError uint32

func (e versionError) Error() string {
	return fmt.Sprintf("it is of version %d: a later release has to read it", uint32(e))
}

func decodeSegmentHeader(bytes []byte) (segmentHeader, error) {
	if len(bytes) < segmentHeaderBytes {
		return segmentHeader{}, errHeader
	}
	// These are written last.
	if little.Uint64(bytes) == 0 {
		return segmentHeader{}, errUnwritten
	}
	if string(bytes[:8]) != magic || little.Uint32(bytes[12:]) != headerCRC(bytes) {
		return segmentHeader{}, errHeader
	}
	if found := little.Uint32(bytes[8:]); found != version {
		return segmentHeader{}, versionError(found)
	}
	at := func(offset int) uint64 { return little.Uint64(bytes[offset:]) }
	return segmentHeader{number: at(16), salt: at(24), firstPosition: at(32), previousEnd: at(40), bytes: at(48)}, nil
}

func headerCRC(bytes []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(bytes[:12]), crc32.IEEETable, bytes[16:segmentHeaderBytes])
}

// checksums computes and checks those of one segment's records. It is the state of a checksum that has seen
// the segment's number and salt.
type checksums uint32

func checksumsOf(header segmentHeader) checksums {
	var start [16]byte
	little.PutUint64(start[:], header.number)
	little.PutUint64(start[8:], header.salt)
	return checksums(crc32.ChecksumIEEE(start[:]))
}

func (c checksums) of(header []byte) uint32 {
	return crc32.Update(uint32(c), crc32.IEEETable, header[4:recordHeaderBytes])
}

func (c checksums) encode(header recordHeader, out []byte) {
	clear(out[:recordHeaderBytes])
	little.PutUint32(out[4:], header.payloadBytes)
	little.PutUint32(out[8:], header.payloadCRC)
	out[12] = byte(header.kind)
	little.PutUint64(out[16:], header.position)
	little.PutUint32(out[24:], header.rows)
	little.PutUint32(out, c.of(out))
}

// decode gives false for what is no record's header. It doesn't look at the payload.
func (c checksums) decode(bytes []byte) (recordHeader, bool) {
	if len(bytes) < recordHeaderBytes || little.Uint32(bytes[4:]) == 0 || little.Uint32(bytes) != c.of(bytes) {
		return recordHeader{}, false
	}
	found := kind(bytes[12])
	if found < kindDestination || found > kindClosed {
		return recordHeader{}, false
	}
	return recordHeader{
		payloadBytes: little.Uint32(bytes[4:]), payloadCRC: little.Uint32(bytes[8:]), kind: found,
		position: little.Uint64(bytes[16:]), rows: little.Uint32(bytes[24:]),
	}, true
}

func (h recordHeader) isSound(payload []byte) bool {
	if len(payload) != int(h.payloadBytes) || crc32.ChecksumIEEE(payload) != h.payloadCRC {
		return false
	}
	return h.kind != kindRows || areRows(h.rows, payload)
}

// areRows says whether the payload begins with the lengths of so many rows, which add up to the rest.
func areRows(rows uint32, payload []byte) bool {
	if rows == 0 || 4*uint64(rows) > uint64(len(payload)) {
		return false
	}
	return byteSum(payload[:4*rows]) == uint64(len(payload))-4*uint64(rows)
}

func byteSum(lengths []byte) uint64 {
	var sum uint64
	for at := 0; at+4 <= len(lengths); at += 4 {
		sum += uint64(little.Uint32(lengths[at:]))
	}
	return sum
}

// pushRows adds some of the rows of a sound payload, by their number in the record.
func pushRows(out *windrow.Rows, rows uint32, payload []byte, from, to int) {
	lengths, bytes := payload[:4*rows], payload[4*rows:]
	start := byteSum(lengths[:4*from])
	chosen := lengths[4*from : 4*to]
	out.Bytes = append(out.Bytes, bytes[start:start+byteSum(chosen)]...)
	for at := 0; at < len(chosen); at += 4 {
		out.Lengths = append(out.Lengths, little.Uint32(chosen[at:]))
	}
}

func (m members) appendTo(out []byte) []byte {
	out = appendID(out, m.id)
	out = little.AppendUint64(out, m.rows.From)
	return little.AppendUint64(out, m.rows.To)
}

// readMembers reads all that stand one after the other; false if one makes no sense.
func readMembers(bytes []byte) ([]members, bool) {
	if len(bytes) == 0 || len(bytes)%membersBytes != 0 {
		return nil, false
	}
	var all []members
	for at := 0; at < len(bytes); at += membersBytes {
		id, _ := readID(bytes[at:])
		rows := windrow.Positions{From: little.Uint64(bytes[at+16:]), To: little.Uint64(bytes[at+24:])}
		if rows.From >= rows.To {
			return nil, false
		}
		all = append(all, members{id, rows})
	}
	return all, true
}

// appendID writes an id as a number of 16 bytes, the smallest first.
func appendID(out []byte, id windrow.BatchID) []byte {
	for index := range id {
		out = append(out, id[len(id)-1-index])
	}
	return out
}

func readID(bytes []byte) (windrow.BatchID, bool) {
	var id windrow.BatchID
	if len(bytes) < len(id) {
		return id, false
	}
	for index := range id {
		id[index] = bytes[len(id)-1-index]
	}
	return id, true
}
