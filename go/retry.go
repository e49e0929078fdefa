package windrow

import (
	"math/rand/v2"
	"time"
)

// Attempts is what is known when it has to be decided whether a batch is sent again.
type Attempts struct {
	// Failed says how many attempts of the batch have failed, this one included.
	Failed int
	// Elapsed is the time since the first of them ended.
	Elapsed time.Duration
	// Survives says whether the rows would survive the end of the process.
	Survives bool
}

// RetryPolicy decides over retries. A program may bring its own, and check it with the package buffertest.
type RetryPolicy interface {
	// Again says after how long to try again. False gives up, and the rows are handed over with the error. It
	// may be called from several goroutines at once.
	Again(failure Failure, attempts Attempts) (time.Duration, bool)
}

// MemoryRetry is how long rows in memory are tried for by default.
const MemoryRetry = 5 * time.Minute

// Backoff waits longer each time, with a random share so that many writers don't come back at once. The zero
// value is the default.
type Backoff struct {
	// First is the wait after the first failure: 100 ms if it is 0.
	First time.Duration
	// Longest is the longest wait: 10 s if it is 0.
	Longest time.Duration
	// MaxAttempts ends it after so many attempts; 0 never does.
	MaxAttempts int
	// MaxElapsed ends it so long after the first failure. With 0 it is MemoryRetry where rows don't survive
	// the process anyway, and never ends where they do.
	MaxElapsed time.Duration
}

// Again doubles the wait each time, up to the longest.
func (b Backoff) Again(_ Failure, attempts Attempts) (time.Duration, bool) {
	limit := b.MaxElapsed
	if limit == 0 && !attempts.Survives {
		limit = MemoryRetry
	}
	if limit > 0 && attempts.Elapsed >= limit || b.MaxAttempts > 0 && attempts.Failed >= b.MaxAttempts {
		return 0, false
	}
	full := orDefault(b.First, 100*time.Millisecond)
	longest := orDefault(b.Longest, 10*time.Second)
	for doublings := 1; doublings < attempts.Failed && full < longest; doublings++ {
		full *= 2
	}
	full = min(full, longest)
	// Between a half and the whole of it.
	return full/2 + rand.N(full-full/2+1), true
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
