package diskbuffer

import (
	"crypto/rand"
	"hash/crc32"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// segment is one that is there.
type segment struct {
	number    uint64
	path      string
	file      *os.File
	checksums checksums
	bytes     int64
	// from and to are the positions of its rows: of the first, and behind the last.
	from uint64
	to   uint64
	// undone counts rows that are not done.
	undone uint64
	// isDamaged: something in it can't be read, and it is kept aside instead of deleted.
	isDamaged bool
	// end is where its records end, when it is not written to any more; 0 before.
	end        int64
	durability durability
}

// durability is how much of a segment would survive a loss of power.
type durability int

const (
	_ durability = iota
	// isDistrusted: a sync of the file has failed.
	isDistrusted
	// isWhole: all of it, and nothing more is written to it.
	isWhole
)

const (
	segmentSuffix = ".segment"
	// rewriteSuffix is of what will take the place of a segment.
	rewriteSuffix = ".rewrite"
)

// active is the segment that is written to.
type active struct {
	mapped    []byte
	checksums checksums
	end       int64
	// header is where a record's is made, apart from the map: it is published in one piece.
	header [recordHeaderBytes]byte
}

type newRecord struct {
	kind     kind
	position uint64
	rows     uint32
	// lengths of rows, and then the rest of the payload.
	lengths []uint32
	bytes   []byte
}

func segmentName(number uint64) string {
	digits := strconv.FormatUint(number, 16)
	return "0000000000000000"[len(digits):] + digits + segmentSuffix
}

var segmentsName = regexp.MustCompile(`^([0-9a-fA-F]{16})\.segment$`)

func segmentNumber(name string) (uint64, bool) {
	found := segmentsName.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	number, err := strconv.ParseUint(found[1], 16, 64)
	return number, err == nil
}

// blank is a file that will be a segment: all of its room is taken, and it is mapped. Without a header it is
// nothing yet.
type blank struct {
	number uint64
	path   string
	file   *os.File
	mapped []byte
}

// createBlank leaves no file if the room can't be had.
func createBlank(folder *folder, number uint64, bytes int64) (*blank, error) {
	path := folder.segmentPath(number)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	made := &blank{number: number, path: path, file: file}
	if err = allocate(file, bytes); err == nil {
		made.mapped, err = syscall.Mmap(int(file.Fd()), 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		made.discard()
		return nil, err
	}
	return made, nil
}

// discard: what can't be removed has no header, and is met as such.
func (b *blank) discard() {
	unmap(b.mapped)
	_ = b.file.Close()
	_ = os.Remove(b.path)
}

func unmap(mapped []byte) {
	if mapped != nil {
		_ = syscall.Munmap(mapped)
	}
}

// writeZeros takes the room on file systems that have no other way.
func writeZeros(file *os.File, bytes int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < bytes; at += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros[:min(int64(len(zeros)), bytes-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// begin writes the header: from now on it is the segment that is written to.
func (b *blank) begin(firstPosition, previousEnd uint64) (*segment, *active) {
	var salt [8]byte
	_, _ = rand.Read(salt[:])
	header := segmentHeader{
		number: b.number, salt: little.Uint64(salt[:]), firstPosition: firstPosition, previousEnd: previousEnd,
		bytes: uint64(len(b.mapped)),
	}
	encoded := header.encode()
	copy(b.mapped[8:], encoded[8:])
	publish(b.mapped, 0, encoded[:8])
	checksums := checksumsOf(header)
	begun := &segment{
		number: b.number, path: b.path, file: b.file, checksums: checksums, bytes: int64(len(b.mapped)),
		from: firstPosition, to: firstPosition,
	}
	return begun, &active{mapped: b.mapped, checksums: checksums, end: segmentHeaderBytes}
}

// push copies a record behind the last one and publishes it. The caller has seen that there is room.
func (a *active) push(record newRecord) {
	payload := a.mapped[a.end+recordHeaderBytes:]
	for index, length := range record.lengths {
		little.PutUint32(payload[4*index:], length)
	}
	size := 4*len(record.lengths) + copy(payload[4*len(record.lengths):], record.bytes)
	header := recordHeader{
		payloadBytes: uint32(size), payloadCRC: crc32.ChecksumIEEE(payload[:size]), kind: record.kind,
		position: record.position, rows: record.rows,
	}
	a.checksums.encode(header, a.header[:])
	copy(a.mapped[a.end+8:], a.header[8:])
	publish(a.mapped, a.end, a.header[:8])
	a.end += recordBytes(int64(size))
}

// publish writes a record's first eight bytes, at once and after all that was written before. The map begins
// at a page, and records begin where 8 divides.
func publish(mapped []byte, at int64, bytes []byte) {
	word := *(*uint64)(unsafe.Pointer(&bytes[0]))
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&mapped[at])), word)
}

// room is what is left for records, if so much is left alone.
func (a *active) room(reserveBytes int64) int64 {
	return max(int64(len(a.mapped))-reserveBytes-a.end, 0)
}
