package diskbuffer

import (
	"errors"
	"fmt"
	"os"

	windrow "windrow.dev/go"
)

// adopt takes over the logs of dead writers to the same table. Those to other tables are for other writers;
// those that can't be read now are complained of, and tried again the next time.
func adopt(root string, own *windrow.Destination, limits limits, report *windrow.LeftOvers) ([]*log, error) {
	paths, err := listFolders(root)
	if err != nil {
		return nil, err
	}
	var logs []*log
	for _, path := range paths {
		adopted, err := adoptOne(path, own, limits, report)
		if err != nil {
			report.Complaints = append(report.Complaints, fmt.Sprintf("%s: %v", path, err))
		}
		if adopted != nil {
			logs = append(logs, adopted)
		}
	}
	return logs, nil
}

func adoptOne(path string, own *windrow.Destination, limits limits, report *windrow.LeftOvers) (*log, error) {
	folder, err := lockFolder(path)
	if err != nil || folder == nil {
		return nil, err
	}
	destination, err := destinationOf(folder)
	// A folder that names no table is anybody's.
	if err != nil || destination != nil && !destination.IsSameTable(own) {
		folder.unlock()
		return nil, err
	}
	adopted, err := recoverLog(folder, limits, report)
	if err != nil {
		folder.unlock()
	}
	return adopted, err
}

// destinationOf reads the table and columns of a log from the first record that tells.
func destinationOf(folder *folder) (*windrow.Destination, error) {
	numbers, err := folder.segments()
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		destination, err := destinationIn(folder.segmentPath(number), number)
		if destination != nil || err != nil {
			return destination, err
		}
	}
	return nil, nil
}

// destinationIn looks at a segment's first record, which has it.
func destinationIn(path string, number uint64) (*windrow.Destination, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	header, length, err := readHeader(file, number)
	if isOfHeader(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	scanner := newScanner(file, checksumsOf(header), segmentHeaderBytes, length)
	found, isThere, err := scanner.next()
	if err != nil || !isThere || found.header.kind != kindDestination {
		return nil, err
	}
	read := new(windrow.Destination)
	if read.UnmarshalBinary(scanner.payload) != nil {
		return nil, nil
	}
	return read, nil
}

// isOfHeader says that a segment's header is not what it should be; other errors are the disk's.
func isOfHeader(err error) bool {
	var later versionError
	return errors.Is(err, errUnwritten) || errors.Is(err, errHeader) || errors.As(err, &later)
}

// readHeader reads a segment's header, and how long the file is.
func readHeader(file *os.File, number uint64) (segmentHeader, int64, error) {
	info, err := file.Stat()
	if err != nil {
		return segmentHeader{}, 0, err
	}
	length := info.Size()
	if length < segmentHeaderBytes {
		// An empty one was never written to.
		if length == 0 {
			return segmentHeader{}, length, errUnwritten
		}
		return segmentHeader{}, length, errHeader
	}
	bytes := make([]byte, segmentHeaderBytes)
	if _, err := file.ReadAt(bytes, 0); err != nil {
		return segmentHeader{}, length, err
	}
	header, err := decodeSegmentHeader(bytes)
	if err == nil && header.number != number {
		err = errHeader
	}
	return header, length, err
}
