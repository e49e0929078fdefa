package diskbuffer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	windrow "windrow.dev/go"
)

// A sync that failed is never repeated on the same file: the kernel takes its pages for written then, and the
// next sync would succeed without writing them. What stands in such a segment is copied to a new file, as long
// as the cache has it, and what comes goes into another segment. Nothing is confirmed before. The same goes
// for the folder: its entries are made anew.

// disk makes files and their names survive a loss of power. Tests bring one that fails.
type disk interface {
	syncFile(file *os.File) error
	syncFolder(path string) error
}

type realDisk struct{}

func (realDisk) syncFile(file *os.File) error { return syncFile(file) }

func (realDisk) syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// unsynced is a segment that may not be on the disk as it is.
type unsynced struct {
	segment
	isDistrusted bool
}

// syncedLog is one whose files a syncer syncs; mu is the log's.
type syncedLog struct {
	mu   *sync.Mutex
	log  *log
	disk disk
}

// sync: all that was written before is on the disk then.
func (s syncedLog) sync() error {
	s.mu.Lock()
	segments := s.log.unsynced()
	s.mu.Unlock()
	for _, segment := range segments {
		if err := s.syncOne(segment); err != nil {
			return err
		}
	}
	if err := s.syncNames(segments); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.wasSynced(segments)
	return nil
}

func (s syncedLog) syncNames(segments []unsynced) error {
	s.mu.Lock()
	names, isSynced := s.log.names, s.log.names == s.log.syncedNames
	s.mu.Unlock()
	if isSynced {
		return nil
	}
	err := s.disk.syncFolder(s.log.folder.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.log.syncedNames = names
		return nil
	}
	for _, segment := range segments {
		err = errors.Join(err, s.log.distrust(segment.number))
	}
	return err
}

func (s syncedLog) syncOne(segment unsynced) error {
	switch {
	case segment.isDistrusted && segment.end > 0:
		return s.takeCopy(segment)
	case !segment.isDistrusted:
		err := s.disk.syncFile(segment.file)
		if err == nil || errors.Is(err, os.ErrClosed) {
			// One that is closed was deleted meanwhile: nobody needs it any more.
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return errors.Join(err, s.log.distrust(segment.number))
	}
	// There was no room for another segment.
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(fmt.Errorf("%s is to be copied", segment.path), s.log.distrust(segment.number))
}

// takeCopy puts a copy, which is synced, in the place of a segment.
func (s syncedLog) takeCopy(segment unsynced) error {
	path := strings.TrimSuffix(segment.path, segmentSuffix) + rewriteSuffix
	made, err := copySegment(segment, path, s.disk)
	s.mu.Lock()
	defer s.mu.Unlock()
	isThere := s.log.segmentOf(segment.number) != nil
	if err == nil && isThere {
		err = s.log.takeCopy(segment.number, path, made)
	}
	if err == nil && isThere {
		return nil
	}
	if made != nil {
		_ = made.Close()
	}
	_ = os.Remove(path)
	if !isThere {
		return nil
	}
	if isDamage(err) {
		s.log.segmentOf(segment.number).isDamaged = true
	}
	return err
}

// copySegment writes what is in the file, as far as the cache knows, to the disk under another name.
func copySegment(segment unsynced, path string, disk disk) (*os.File, error) {
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(made, io.NewSectionReader(segment.file, 0, segment.end)); err == nil {
		err = made.Truncate(segment.bytes)
	}
	if err == nil {
		err = wholeCopy(segment, made)
	}
	if err == nil {
		err = disk.syncFile(made)
	}
	return made, err
}

// wholeCopy: pages that were taken for written may have been read anew, without what was written to them.
func wholeCopy(segment unsynced, made *os.File) error {
	damaged := fmt.Errorf("%w: %s: what was written there is gone", windrow.ErrDamaged, segment.path)
	if _, _, err := readHeader(made, segment.number); isOfHeader(err) {
		return damaged
	} else if err != nil {
		return err
	}
	scanner := newScanner(made, segment.checksums, segmentHeaderBytes, segment.end)
	for {
		_, isThere, err := scanner.next()
		if err != nil {
			return err
		}
		if !isThere {
			break
		}
	}
	if len(scanner.damage) > 0 || scanner.end != segment.end {
		return damaged
	}
	return nil
}

// syncName: the root's own name and those in it survive a loss of power then.
func syncName(root string, disk disk) error {
	if err := disk.syncFolder(root); err != nil {
		return err
	}
	// A folder that may not be read was not made by us.
	if err := disk.syncFolder(filepath.Dir(root)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// syncPause is how long a disk is left alone after a sync has failed, and failed again.
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
	log    syncedLog
	dirty  chan struct{}
	stops  chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	written reached
	synced  reached
}

func startSyncer(sync Sync, events windrow.Events, log syncedLog) *syncer {
	started := &syncer{
		sync: sync, events: events, log: log,
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
		err := s.log.sync()
		if err != nil {
			// The second time concerns other files.
			err = s.log.sync()
		}
		if err != nil {
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
