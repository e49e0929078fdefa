package diskbuffer

import (
	"errors"
	"os"
	"syscall"
)

// allocate takes the room on the disk: pages of a map that have none would end the process when the disk is full.
func allocate(file *os.File, bytes int64) error {
	for {
		err := syscall.Fallocate(int(file.Fd()), 0, 0, bytes)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EOPNOTSUPP):
			return writeZeros(file, bytes)
		}
		return err
	}
}

// syncFile makes a file's bytes survive a loss of power.
func syncFile(file *os.File) error {
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = connection.Control(func(descriptor uintptr) {
		for failed = syscall.EINTR; errors.Is(failed, syscall.EINTR); {
			failed = syscall.Fdatasync(int(descriptor))
		}
	})
	return errors.Join(err, failed)
}
