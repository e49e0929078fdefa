package diskbuffer

import (
	"errors"
	"os"
	"sync"
	"time"

	windrow "windrow.dev/go"
)

// dirt is files that have been written to.
type dirt struct {
	folder string

	mu    sync.Mutex
	files []*os.File
}

// maxDirtyFiles: nobody takes them where nothing is synced, and those of late are enough.
const maxDirtyFiles = 1024

// add is for a new segment: it, and that it is there.
func (d *dirt) add(file *os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = append(d.files, file)
	if excess := len(d.files) - maxDirtyFiles; excess > 0 {
		d.files = append(d.files[:0], d.files[excess:]...)
	}
}

// sync leaves the latest file in: it is still written to.
func (d *dirt) sync() error {
	d.mu.Lock()
	files := append([]*os.File(nil), d.files...)
	d.mu.Unlock()
	for _, file := range files {
		// One that is closed was deleted meanwhile: nobody needs it any more.
		if err := syncFile(file); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	if len(files) < 2 {
		return nil
	}
	if err := syncFolder(d.folder); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = append(d.files[:0], d.files[len(files)-1:]...)
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// syncPause is how long a disk is left alone after a sync has failed.
const syncPause = 500 * time.Millisecond

// reached says how far something has come: all rows before a position, and so many seals and splits.
type reached struct {
	before   uint64
	recorded uint64
}

// syncer makes what was written survive a loss of power: one goroutine, and one sync for all who wait.
type syncer struct {
	sync   Sync
	events windrow.Events
	dirt   *dirt
	dirty  chan struct{}
	stops  chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	written reached
	synced  reached
}

func startSyncer(sync Sync, events windrow.Events, dirt *dirt) *syncer {
	started := &syncer{
		sync: sync, events: events, dirt: dirt,
		dirty: make(chan struct{}, 1), stops: make(chan struct{}), ended: make(chan struct{}),
	}
	go started.run()
	return started
}

// wrote says that all rows before this position are in the files, and so many seals and splits.
func (s *syncer) wrote(before, recorded uint64) {
	s.mu.Lock()
	wasClean := s.written == s.synced
	s.written.before = max(s.written.before, before)
	s.written.recorded = max(s.written.recorded, recorded)
	s.mu.Unlock()
	if wasClean {
		s.ring()
	}
}

// syncedRecords says how many seals and splits are there for good.
func (s *syncer) syncedRecords() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced.recorded
}

// stop returns after a last sync.
func (s *syncer) stop() {
	close(s.stops)
	<-s.ended
}

func (s *syncer) run() {
	defer close(s.ended)
	for isStopped := false; !isStopped; {
		isStopped = s.wait()
		s.mu.Lock()
		target, isClean := s.written, s.written == s.synced
		s.mu.Unlock()
		if isClean {
			continue
		}
		if err := s.dirt.sync(); err != nil {
			s.again()
			continue
		}
		s.mu.Lock()
		s.synced = target
		hasMore := s.written != target
		s.mu.Unlock()
		if hasMore {
			s.ring()
		}
		s.events.Kept(target.before)
		s.events.Wake()
	}
}

// again tries once more, after a pause.
func (s *syncer) again() {
	timer := time.NewTimer(syncPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stops:
	}
	s.ring()
}

// ring says that there is something to sync.
func (s *syncer) ring() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// wait returns when there is something to sync, and it is time. It says whether it is for the last time.
func (s *syncer) wait() bool {
	select {
	case <-s.dirty:
	case <-s.stops:
		return true
	}
	if s.sync.isAlways() {
		return false
	}
	timer := time.NewTimer(s.sync.interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-s.stops:
		return true
	}
}
