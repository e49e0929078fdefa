package diskbuffer

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Sub-folders: one for each writer, which holds a lock on it for as long as it lives.

const (
	lockName = "lock"
	// damagedName is where segments are kept in which something could not be read. Nothing in it is ever
	// removed.
	damagedName = "damaged"
)

// folder is a sub-folder whose lock is ours.
type folder struct {
	path string
	lock *os.File
}

// createOwn makes a new sub-folder. Its name begins with the time, so that older ones are adopted first.
func createOwn(root string) (*folder, error) {
	if err := makeFolder(root); err != nil {
		return nil, err
	}
	for {
		var random [4]byte
		_, _ = rand.Read(random[:])
		name := fmt.Sprintf("%016x-%08x", time.Now().UnixNano(), binary.BigEndian.Uint32(random[:]))
		path := filepath.Join(root, name)
		if err := makeFolder(path); err != nil {
			return nil, err
		}
		// Another writer may just have taken it for one that a dead writer has left empty, and removed it.
		if own, err := lockFolder(path); own != nil || err != nil {
			return own, err
		}
	}
}

// lockFolder takes over a sub-folder, if its writer is dead; otherwise it gives nil.
func lockFolder(path string) (*folder, error) {
	file, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	// Whoever had the lock before may have removed the folder.
	if isRemoved(file) {
		_ = file.Close()
		return nil, nil
	}
	return &folder{path, file}, nil
}

func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func isRemoved(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	status, isKnown := info.Sys().(*syscall.Stat_t)
	return isKnown && status.Nlink == 0
}

var writersName = regexp.MustCompile("^[0-9a-fA-F]{16}-[0-9a-fA-F]{8}$")

// listFolders gives all sub-folders that look like a writer's, the oldest first.
func listFolders(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	var paths []string
	for _, entry := range entries {
		if entry.IsDir() && writersName.MatchString(entry.Name()) {
			paths = append(paths, filepath.Join(root, entry.Name()))
		}
	}
	return paths, err
}

// segments gives the numbers of the segments that are there, in order.
func (f *folder) segments() ([]uint64, error) {
	entries, err := os.ReadDir(f.path)
	var numbers []uint64
	for _, entry := range entries {
		if number, isSegment := segmentNumber(entry.Name()); isSegment {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

func (f *folder) segmentPath(number uint64) string { return filepath.Join(f.path, segmentName(number)) }

// remove takes the sub-folder away, when nothing is in it any more but the lock, and copies of segments that
// were not made whole. What can't be removed is found empty by the next writer, which tries again.
func (f *folder) remove() {
	entries, _ := os.ReadDir(f.path)
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), rewriteSuffix) {
			_ = os.Remove(filepath.Join(f.path, entry.Name()))
		}
	}
	_ = os.Remove(filepath.Join(f.path, lockName))
	_ = os.Remove(f.path)
	f.unlock()
}

// unlock lets another writer adopt it from now on.
func (f *folder) unlock() { _ = f.lock.Close() }

// keepAside moves a file to where nothing is removed.
func (f *folder) keepAside(path string) error {
	aside := filepath.Join(filepath.Dir(f.path), damagedName)
	if err := makeFolder(aside); err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(aside, filepath.Base(f.path)+"-"+filepath.Base(path)))
}

func makeFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
