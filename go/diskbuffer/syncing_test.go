package diskbuffer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	windrow "windrow.dev/go"
)

// failingDisk is one some of whose syncs fail, and whose cache takes pages for written then: what a later sync
// of the same file says is worth nothing.
type failingDisk struct {
	t     *testing.T
	fails []int
	calls int
	// distrusted files, and what is on the disk, by their numbers.
	distrusted []uint64
	there      map[uint64][]byte
}

func numberOf(t *testing.T, file *os.File) uint64 {
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func (d *failingDisk) meets() error {
	d.calls++
	if slices.Contains(d.fails, d.calls-1) {
		return syscall.EIO
	}
	return nil
}

func (d *failingDisk) syncFile(file *os.File) error {
	number := numberOf(d.t, file)
	if slices.Contains(d.distrusted, number) {
		d.t.Fatal("a sync that failed is repeated on the same file")
	}
	if err := d.meets(); err != nil {
		d.distrusted = append(d.distrusted, number)
		// Its number is not given to another file as long as it is open.
		held, dupErr := syscall.Dup(int(file.Fd()))
		if dupErr != nil {
			d.t.Fatal(dupErr)
		}
		d.t.Cleanup(func() { _ = syscall.Close(held) })
		return err
	}
	d.there[number] = contentOf(d.t, file)
	return nil
}

func contentOf(t *testing.T, file *os.File) []byte {
	info, err := file.Stat()
	content := make([]byte, info.Size())
	if err == nil {
		_, err = file.ReadAt(content, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (d *failingDisk) syncFolder(string) error { return d.meets() }

func failingLog(t *testing.T, fails ...int) (syncedLog, *failingDisk) {
	limits := Options{SegmentBytes: 1}.limits(windrow.BatchLimits{Rows: 100, Bytes: 1 << 20})
	own, err := createOwn(filepath.Join(t.TempDir(), "buffer"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := createLog(own, &windrow.Destination{Database: "d", Table: "t"}, limits)
	if err != nil {
		t.Fatal(err)
	}
	made.othersBytes = func() int64 { return 0 }
	disk := &failingDisk{t: t, fails: fails, there: map[uint64][]byte{}}
	return syncedLog{new(sync.Mutex), made, disk}, disk
}

func (s syncedLog) push(t *testing.T, row []byte) {
	t.Helper()
	if _, err := s.log.append(windrow.Rows{Bytes: row, Lengths: []uint32{uint32(len(row))}}); err != nil {
		t.Fatal(err)
	}
}

// isThere says whether the files as the disk has them hold the row.
func (d *failingDisk) isThere(log *log, row string) bool {
	return slices.ContainsFunc(log.segments, func(segment *segment) bool {
		return bytes.Contains(d.there[numberOf(d.t, segment.file)], []byte(row))
	})
}

// Whichever of the syncs fail: when all is said to be on the disk, each row is, in a file in which no sync
// failed.
func TestASyncThatFailedIsNotRepeatedOnTheSameFile(t *testing.T) {
	for first := range 12 {
		for second := first; second < first+4; second++ {
			log, disk := failingLog(t, first, second)
			for number := range 40 {
				log.push(t, fmt.Appendf(nil, "row %03d %s", number, bytes.Repeat([]byte("x"), 900)))
				if number%4 != 3 {
					continue
				}
				for log.sync() != nil {
				}
				for row := range number + 1 {
					if text := fmt.Sprintf("row %03d ", row); !disk.isThere(log.log, text) {
						t.Fatalf("%d, %d: %s is not there", first, second, text)
					}
				}
			}
			if disk.calls <= second {
				t.Fatal("the second one was not met with", second)
			}
		}
	}
}

func TestNoSegmentIsForgottenHoweverManyThereAre(t *testing.T) {
	log, disk := failingLog(t)
	for range 1100 {
		log.push(t, bytes.Repeat([]byte("x"), 12<<10))
	}
	if err := log.sync(); err != nil {
		t.Fatal(err)
	}
	if len(disk.there) != 1100 || len(log.log.unsynced()) != 1 {
		t.Fatal(len(disk.there), len(log.log.unsynced()))
	}
}

func TestNothingIsConfirmedWhileTheCacheHasLostWhatWasWritten(t *testing.T) {
	log, _ := failingLog(t, 0)
	log.push(t, []byte("precious"))
	if log.sync() == nil {
		t.Fatal("the first sync fails")
	}
	file := log.log.segments[0].file
	at := bytes.Index(contentOf(t, file), []byte("precious"))
	if _, err := file.WriteAt(make([]byte, 8), int64(at)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := log.sync(); !errors.Is(err, windrow.ErrDamaged) {
			t.Fatal(err)
		}
	}
	// It is told as lost; then the rest can be confirmed.
	sealed, err := log.log.seal()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := log.log.reading(sealed.ID)
	if err != nil || !plan.isSuspect {
		t.Fatal(plan, err)
	}
	if _, err := plan.read(); !errors.Is(err, windrow.ErrDamaged) {
		t.Fatal(err)
	}
	if err := log.log.done(sealed.ID); err != nil {
		t.Fatal(err)
	}
	if err := log.sync(); err != nil {
		t.Fatal(err)
	}
}
