// Package diskbuffer keeps the rows of a writer in files that are mapped into memory: they survive the death
// of the process without a system call per row.
//
// Each writer has a sub-folder of its own under the folder that it was given, and holds a lock on it. In it
// is a log: numbered segments, each taken whole from the disk before it is mapped, so that a full disk is an
// error of the append that met it, and never a signal. A record is copied behind the last one and then
// published by one atomic store of its first eight bytes, which were zero until then. The kernel has the
// pages, so a killed process loses no published record. Against loss of power the pages have to be synced:
// never, at an interval, or before an append is confirmed.
//
// Rows are numbered by their position in the log. Seals, splits and dones are records too: a batch is an id
// and a range of positions. What is written through the map is read back with ordinary reads, so that a
// disk's error is an error.
//
// The writer alone deletes, and only from the old end: a segment goes when all rows in it, and all segments
// before it, are done. So a seal is never gone before its rows, nor a done before its batch.
//
// After a crash another writer for the same table finds the lock free, reads all segments, and goes on where
// the dead one stopped: sealed batches under their ids, the rest in new ones. Writers in Rust, Python and Go
// read each other's files; docs/internals/writer-disk.md in Windrow's repository has the format.
//
// It is for Unix, and not for several writers of one log, nor for network file systems without locks.
package diskbuffer

import (
	"sync"
	"time"

	windrow "windrow.dev/go"
)

// Sync says when what was written is made to survive a loss of power.
type Sync struct{ interval time.Duration }

// SyncNever leaves it to the kernel. The death of the process loses nothing even so.
func SyncNever() Sync { return Sync{} }

// SyncInterval syncs at least so often: a loss of power loses what came later.
func SyncInterval(interval time.Duration) Sync { return Sync{max(interval, time.Millisecond)} }

// SyncAlways syncs before an append is confirmed: WriteBlocking returns when the row is on the disk. One sync
// serves all who wait.
func SyncAlways() Sync { return Sync{-1} }

func (s Sync) isNever() bool { return s.interval == 0 }

func (s Sync) isAlways() bool { return s.interval < 0 }

// Options are what a buffer is told at its opening.
type Options struct {
	// Sync is SyncNever() if it is left out.
	Sync Sync
	// MaxDiskBytes is what the segments of this writer, and of those that it has adopted, may take of the
	// disk together: 1 GiB if it is 0.
	MaxDiskBytes int64
	// SegmentBytes is the size of a segment: 16 MiB if it is 0. A row that is larger gets a larger one.
	SegmentBytes int64
}

const (
	minSegmentBytes = 16 << 10
	maxSegmentBytes = 1 << 30
)

// limits are options that were checked.
type limits struct {
	sync         Sync
	maxDiskBytes int64
	segmentBytes int64
	batchRows    int
	batchBytes   int
}

func (o Options) limits(batch windrow.BatchLimits) limits {
	checked := limits{o.Sync, o.MaxDiskBytes, o.SegmentBytes, max(batch.Rows, 1), max(batch.Bytes, 1)}
	if checked.maxDiskBytes == 0 {
		checked.maxDiskBytes = 1 << 30
	}
	if checked.segmentBytes == 0 {
		checked.segmentBytes = 16 << 20
	}
	// There is room for several segments, and a segment has room for several rows.
	most := min(max(checked.maxDiskBytes/4, minSegmentBytes), maxSegmentBytes)
	checked.segmentBytes = roundUp(min(max(checked.segmentBytes, minSegmentBytes), most), 4096)
	return checked
}

// reserveBytes stand at the end of each segment for seals and dones alone: when rows find no room any more,
// what is there can still be sealed, sent and released.
func (l limits) reserveBytes() int64 { return roundUp(l.segmentBytes/16, 8) }

// recordBytes: larger rows go alone; more rows than fit become several records, none larger than a batch.
func (l limits) recordBytes() int { return min(int(l.segmentBytes/4), l.batchBytes) }

func roundUp(value, step int64) int64 { return (value + step - 1) / step * step }

// At gives buffers in a folder. It is made if it isn't there; its parent has to be.
func At(folder string, options Options) windrow.Opener { return opener{folder, options} }

type opener struct {
	folder  string
	options Options
}

// OpenBuffer makes a sub-folder, and reads what dead writers have left, which takes a while if it is much.
func (o opener) OpenBuffer(destination *windrow.Destination, batch windrow.BatchLimits) (windrow.Buffer, error) {
	limits := o.options.limits(batch)
	own, err := createOwn(o.folder)
	if err != nil {
		return nil, err
	}
	log, err := createLog(own, destination, limits)
	if err != nil {
		own.remove()
		return nil, err
	}
	if !limits.sync.isNever() {
		if err := syncName(o.folder, realDisk{}); err != nil {
			log.remove()
			return nil, err
		}
	}
	buffer := &buffer{root: o.folder, limits: limits, destination: destination, own: log}
	log.othersBytes = buffer.adoptedBytes
	found, err := buffer.look()
	if err != nil {
		_ = buffer.Close()
		return nil, err
	}
	buffer.found = &found
	return buffer, nil
}

type buffer struct {
	root        string
	limits      limits
	destination *windrow.Destination
	syncer      *syncer

	mu  sync.Mutex
	own *log

	// adoptedMu may be taken while mu is held, not the other way round.
	adoptedMu sync.Mutex
	adopted   []*log
	found     *windrow.LeftOvers
}

func (b *buffer) Attach(events windrow.Events) {
	if !b.limits.sync.isNever() {
		b.syncer = startSyncer(b.limits.sync, events, syncedLog{&b.mu, b.own, realDisk{}})
	}
}

func (b *buffer) Survives() bool { return true }

func (b *buffer) Append(rows windrow.Rows) (windrow.Appended, error) {
	b.mu.Lock()
	appended, err := b.own.append(rows)
	b.mu.Unlock()
	if err != nil || b.syncer == nil {
		return appended, err
	}
	b.syncer.wrote(appended.First+uint64(rows.Count()), 0)
	if b.limits.sync.isAlways() {
		appended.Kept = windrow.KeptLater
	}
	return appended, nil
}

func (b *buffer) adoptedBytes() int64 {
	b.adoptedMu.Lock()
	defer b.adoptedMu.Unlock()
	var sum int64
	for _, log := range b.adopted {
		sum += log.diskBytes
	}
	return sum
}

func (b *buffer) NextPosition() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own.nextPosition
}

func (b *buffer) Open() windrow.OpenRows {
	b.mu.Lock()
	defer b.mu.Unlock()
	return windrow.OpenRows{Rows: b.own.groups.rows, FullBatches: b.own.groups.full()}
}

func (b *buffer) Seal() (*windrow.Sealed, error) {
	b.mu.Lock()
	sealed, err := b.own.seal()
	recorded := b.own.recorded
	b.mu.Unlock()
	b.recorded(recorded)
	return sealed, err
}

// recorded: seals and splits are synced as rows are.
func (b *buffer) recorded(recorded uint64) {
	if b.syncer != nil {
		b.syncer.wrote(0, recorded)
	}
}

// onLogOf calls act on the log that has the batch.
func (b *buffer) onLogOf(id windrow.BatchID, act func(*log) error) error {
	b.mu.Lock()
	if b.own.has(id) {
		defer b.mu.Unlock()
		return act(b.own)
	}
	b.mu.Unlock()
	b.adoptedMu.Lock()
	defer b.adoptedMu.Unlock()
	for _, log := range b.adopted {
		if log.has(id) {
			return act(log)
		}
	}
	return windrow.ErrUnknownBatch
}

func (b *buffer) Load(id windrow.BatchID) (windrow.Rows, error) {
	var plan reading
	err := b.onLogOf(id, func(log *log) (err error) {
		plan, err = log.reading(id)
		return err
	})
	if err != nil {
		return windrow.Rows{}, err
	}
	// An id that is sent has to be there also after a loss of power, if its rows have to. But what the disk has
	// lost will never be there.
	if b.limits.sync.isAlways() && b.syncer != nil && plan.recorded > b.syncer.syncedRecords() && !plan.isSuspect {
		return windrow.Rows{}, windrow.ErrNotYet
	}
	// It is read without the lock: appends go on meanwhile.
	rows, err := plan.read()
	if isDamage(err) {
		_ = b.onLogOf(id, func(log *log) error {
			log.keepAside(plan)
			return nil
		})
	}
	return rows, err
}

func (b *buffer) Split(id windrow.BatchID, cuts []int) ([]windrow.Sealed, error) {
	var pieces []windrow.Sealed
	err := b.onLogOf(id, func(log *log) (err error) {
		pieces, err = log.split(id, cuts)
		return err
	})
	b.mu.Lock()
	recorded := b.own.recorded
	b.mu.Unlock()
	b.recorded(recorded)
	return pieces, err
}

func (b *buffer) Done(id windrow.BatchID) error {
	err := b.onLogOf(id, func(log *log) error { return log.done(id) })
	b.adoptedMu.Lock()
	defer b.adoptedMu.Unlock()
	left := b.adopted[:0]
	for _, log := range b.adopted {
		if log.isDone() {
			log.remove()
		} else {
			left = append(left, log)
		}
	}
	clear(b.adopted[len(left):])
	b.adopted = left
	return err
}

func (b *buffer) LeftOvers() (windrow.LeftOvers, error) {
	b.adoptedMu.Lock()
	found := b.found
	b.found = nil
	b.adoptedMu.Unlock()
	if found != nil {
		return *found, nil
	}
	return b.look()
}

// look takes over what dead writers have left.
func (b *buffer) look() (windrow.LeftOvers, error) {
	var found windrow.LeftOvers
	logs, err := adopt(b.root, b.destination, b.limits, &found)
	b.adoptedMu.Lock()
	defer b.adoptedMu.Unlock()
	for _, log := range logs {
		found.Batches = append(found.Batches, log.sealedBatches()...)
		b.adopted = append(b.adopted, log)
	}
	return found, err
}

func (b *buffer) Close() error {
	if b.syncer != nil {
		b.syncer.stop()
	}
	b.adoptedMu.Lock()
	for _, log := range b.adopted {
		log.close()
	}
	b.adopted = nil
	b.adoptedMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own.closeOwn()
}
