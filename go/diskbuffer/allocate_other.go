//go:build unix && !linux

package diskbuffer

import "os"

// allocate takes the room on the disk: pages of a map that have none would end the process when the disk is
// full.
func allocate(file *os.File, bytes int64) error { return writeZeros(file, bytes) }

// syncFile makes a file's bytes survive a loss of power.
func syncFile(file *os.File) error { return file.Sync() }
