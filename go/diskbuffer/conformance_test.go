package diskbuffer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	windrow "windrow.dev/go"
	"windrow.dev/go/buffertest"
	"windrow.dev/go/diskbuffer"
)

type place struct {
	folder  string
	options diskbuffer.Options
}

func (p place) Opener() windrow.Opener { return diskbuffer.At(p.folder, p.options) }

// Killed copies what a killed process leaves: the bytes, and no lock.
func (p place) Killed(t *testing.T) buffertest.Place {
	return place{copied(t, p.folder), p.options}
}

func copied(t testing.TB, from string) string {
	to := filepath.Join(t.TempDir(), "buffer")
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		bytes, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, bytes, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestConformance(t *testing.T) {
	for name, options := range map[string]diskbuffer.Options{
		"Never":    {SegmentBytes: 256 << 10},
		"Interval": {SegmentBytes: 256 << 10, Sync: diskbuffer.SyncInterval(time.Millisecond)},
		"Always":   {SegmentBytes: 256 << 10, Sync: diskbuffer.SyncAlways()},
		"Tiny":     {SegmentBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			buffertest.Run(t, func(t *testing.T) buffertest.Place {
				return place{filepath.Join(t.TempDir(), "buffer"), options}
			})
		})
	}
}
