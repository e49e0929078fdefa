package windrow

import (
	"log/slog"
	"time"
)

// Options are what a writer is told at its opening. The zero value is good for most.
type Options struct {
	// Columns are the table's columns that rows carry. Without it a struct's are those of its fields, and a
	// Row's are all that take values.
	Columns []string
	// BatchRows is how many rows a batch has at most: 5000 if it is 0.
	BatchRows int
	// BatchBytes is how many bytes a batch has at most, unless a single row is larger: 16 MiB if it is 0.
	BatchBytes int
	// FlushInterval is how long a row waits for others: 1 s if it is 0.
	FlushInterval time.Duration
	// Buffer is where rows wait: in memory if it is nil.
	Buffer Opener
	// MaxBytes bounds rows that wait or are in flight: 256 MiB if it is 0. A buffer's own limit counts, too.
	MaxBytes int64
	// MaxInFlight is how many batches are sent at once, or wait to be sent again: 4 if it is 0.
	MaxInFlight int
	// Ordered sends one batch after the other, each only when the one before has come to its end.
	Ordered bool
	// Retry decides over retries: Backoff{} if it is nil.
	Retry RetryPolicy
	// MaxErrors is how many errors wait for whoever reads Errors: 1000 if it is 0.
	MaxErrors int
	// MaxErrorBytes bounds the rows of these errors: 64 MiB if it is 0.
	MaxErrorBytes int64
	// LeftOversInterval is how often to look for what dead processes have left: 10 s if it is 0.
	LeftOversInterval time.Duration
	// Settings are ClickHouse's settings for the inserts.
	Settings map[string]string
	// StoreTimeout is how long one attempt to store a batch may take: 5 min if it is 0.
	StoreTimeout time.Duration
	// Logger hears of retries and of rows that come back, never of their values: slog.Default() if it is nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.BatchRows = orDefault(o.BatchRows, 5000)
	o.BatchBytes = orDefault(o.BatchBytes, 16<<20)
	o.FlushInterval = orDefault(o.FlushInterval, time.Second)
	o.MaxBytes = orDefault(o.MaxBytes, 256<<20)
	o.MaxInFlight = orDefault(o.MaxInFlight, 4)
	o.MaxErrors = orDefault(o.MaxErrors, 1000)
	o.MaxErrorBytes = orDefault(o.MaxErrorBytes, 64<<20)
	o.LeftOversInterval = orDefault(o.LeftOversInterval, 10*time.Second)
	o.StoreTimeout = orDefault(o.StoreTimeout, 5*time.Minute)
	if o.Buffer == nil {
		o.Buffer = Memory()
	}
	if o.Retry == nil {
		o.Retry = Backoff{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
