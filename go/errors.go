package windrow

import (
	"errors"
	"fmt"
)

var (
	// ErrFull says that there is no room for a row now. There will be when something was stored.
	ErrFull = errors.New("windrow: the writer's buffer is full")
	// ErrClosed says that the writer takes nothing any more.
	ErrClosed = errors.New("windrow: the writer is closed")
	// ErrNotYet is a buffer's answer to Load: the rows can be had when the batch's record has come to where
	// it is kept. The buffer then calls Wake.
	ErrNotYet = errors.New("windrow: the buffer has not recorded the batch yet")
	// ErrUnknownBatch is a buffer's answer for a batch that is done, or that another process has taken over.
	ErrUnknownBatch = errors.New("windrow: the buffer has no such batch")
	// ErrDamaged says that what a buffer keeps can't be read as what was written.
	ErrDamaged = errors.New("windrow: the buffer is damaged")

	errNoDestination = errors.New("windrow: no destination of rows can be read")
)

// TooLargeError says that so much is never taken at once.
type TooLargeError struct {
	Bytes    int64
	MaxBytes int64
}

// Error names both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("windrow: %d bytes of rows can't be taken at once: the limit is %d", e.Bytes, e.MaxBytes)
}

// ValueError says that a value doesn't fit its column. Nothing of the call was taken.
type ValueError struct {
	Column string
	Err    error
}

// Error names the column.
func (e *ValueError) Error() string { return fmt.Sprintf("windrow: column %s: %v", e.Column, e.Err) }

// Unwrap gives what is wrong with the value.
func (e *ValueError) Unwrap() error { return e.Err }

// CloseError says that a writer was closed before all rows were known to be stored.
type CloseError struct {
	// RowsHandedOver came back through Errors, as they don't survive the process.
	RowsHandedOver uint64
	// RowsKept stay in the buffer: for the next writer that opens it, or for the one that has taken them.
	RowsKept uint64
	// Err is why the time was over.
	Err error
}

// Error says how many rows are where.
func (e *CloseError) Error() string {
	return fmt.Sprintf("windrow: closed before all rows were stored: %d came back, %d stay in the buffer: %v",
		e.RowsHandedOver, e.RowsKept, e.Err)
}

// Unwrap gives why the time was over.
func (e *CloseError) Unwrap() error { return e.Err }

// Reason says why rows came back.
type Reason int

const (
	// ReasonValues means that ClickHouse does not take these rows' values.
	ReasonValues Reason = iota + 1
	// ReasonRefused means that ClickHouse takes no rows here, or not from this account.
	ReasonRefused
	// ReasonMaybeStored means that a view of the table failed, or that the writer was closed while the rows
	// were on their way: the table may have them.
	ReasonMaybeStored
	// ReasonGaveUp means that the retries are over. The rows may be stored, if an answer was lost.
	ReasonGaveUp
	// ReasonLost means that the buffer is damaged: the error has no rows.
	ReasonLost
	// ReasonClosed means that the writer was closed before the rows were sent.
	ReasonClosed
	// ReasonNotKept means that the buffer could not keep rows that Write had handed to it (Redis was away,
	// say).
	ReasonNotKept
)

var reasonTexts = map[Reason]string{
	ReasonValues: "values", ReasonRefused: "refused", ReasonMaybeStored: "maybe_stored", ReasonGaveUp: "gave_up",
	ReasonLost: "lost", ReasonClosed: "closed", ReasonNotKept: "not_kept",
}

// String gives the reason's name, the same one as in the writers for other languages.
func (r Reason) String() string { return reasonTexts[r] }

// WriteError is rows that came to a bad end.
type WriteError struct {
	BatchID BatchID
	Reason  Reason
	// RowCount says how many rows it is about: as many as Rows has, unless they are lost.
	RowCount uint64
	// Rows are the rows as they were encoded.
	Rows Rows
	// Destination says where the rows should have gone, and how they are encoded.
	Destination *Destination
	// Err is what was answered last: an *Exception if it was ClickHouse that refused the rows.
	Err error
}

// Error says how many rows did not get where, and why.
func (e *WriteError) Error() string {
	return fmt.Sprintf("windrow: %d rows for %s came back (%s): %v", e.RowCount, e.Destination.QuotedTable(), e.Reason, e.Err)
}

// Unwrap gives what was answered last.
func (e *WriteError) Unwrap() error { return e.Err }
