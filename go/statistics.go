package windrow

// Statistics are counts since a writer was opened, and what it holds now. What was written is stored, failed,
// waiting or in flight.
type Statistics struct {
	RowsWritten uint64
	RowsStored  uint64
	// RowsFailed were handed over with an error.
	RowsFailed uint64
	// RowsLeftOver were found of processes that have died.
	RowsLeftOver uint64
	// RowsWaiting wait for their batch.
	RowsWaiting uint64
	// RowsInFlight are in batches that are sent, or wait to be sent again.
	RowsInFlight uint64
	// BytesHeld is what counts for MaxBytes.
	BytesHeld       int64
	BatchesStored   uint64
	BatchesInFlight uint64
	// Retries counts attempts after a batch's first.
	Retries uint64
	// BatchesSplit were cut to find the guilty rows.
	BatchesSplit uint64
	// ErrorsDropped gave way to newer ones, as nobody read Errors.
	ErrorsDropped uint64
	// DamagedBytes of a buffer could not be read as what was written.
	DamagedBytes uint64
	// LastError is of the latest failed attempt, or nil.
	LastError error
}
