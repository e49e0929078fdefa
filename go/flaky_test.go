package windrow

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// flaky is a buffer of which every call fails now and then.
type flaky struct {
	Buffer
	mu     sync.Mutex
	random *rand.Rand
	events Events
}

type flakyOpener struct{ seed uint64 }

func (f flakyOpener) OpenBuffer(destination *Destination, limits BatchLimits) (Buffer, error) {
	inner, err := Memory().OpenBuffer(destination, limits)
	return &flaky{Buffer: inner, random: rand.New(rand.NewPCG(f.seed, 0))}, err
}

var errFlaky = errors.New("a disk's error")

func (f *flaky) fails() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.IntN(3) == 0 {
		return errFlaky
	}
	return nil
}

func (f *flaky) Attach(events Events) { f.events = events }

func (f *flaky) Append(rows Rows) (Appended, error) {
	if err := f.fails(); err != nil {
		return Appended{}, err
	}
	return f.Buffer.Append(rows)
}

func (f *flaky) Seal() (*Sealed, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Buffer.Seal()
}

func (f *flaky) Load(id BatchID) (Rows, error) {
	if f.fails() != nil {
		go f.events.Wake()
		return Rows{}, ErrNotYet
	}
	if err := f.fails(); err != nil {
		return Rows{}, err
	}
	return f.Buffer.Load(id)
}

func (f *flaky) Split(id BatchID, cuts []int) ([]Sealed, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Buffer.Split(id, cuts)
}

func TestABufferThatFailsNowAndThenLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		random := rand.New(rand.NewPCG(seed, 1))
		store.judge = func(batch Batch) error {
			if slices.Contains(numbersOf(batch.Rows), 77) {
				return &Exception{Code: 469, Text: "a value"}
			}
			if random.IntN(4) == 0 {
				return errors.New("away")
			}
			return nil
		}
		writer := opened(t, store, Options{BatchRows: 20, Buffer: flakyOpener{seed}, FlushInterval: time.Millisecond})
		var taken []uint64
		for n := range uint64(500) {
			switch err := writer.Write(number{n}); {
			case err == nil && n != 77:
				taken = append(taken, n)
			case err != nil && err != errFlaky:
				t.Fatal(err)
			}
		}
		if err := writer.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		closed(t, writer)
		found := store.numbers()
		slices.Sort(found)
		have(t, found, taken...)
		equal(t, writer.Statistics().BytesHeld, 0)
	})
}

func TestAFlushIsLetGoByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.gate = make(chan struct{})
		writer := opened(t, store, Options{})
		write(t, writer, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		equal(t, writer.Flush(ctx), context.DeadlineExceeded)
		close(store.gate)
		equal(t, writer.Flush(t.Context()), nil)
		have(t, store.numbers(), 1)
		closed(t, writer)
	})
}

// surviving is a buffer in memory that says that it survives.
type surviving struct{ Buffer }

func (surviving) Survives() bool { return true }

func (surviving) OpenBuffer(destination *Destination, limits BatchLimits) (Buffer, error) {
	inner, err := Memory().OpenBuffer(destination, limits)
	return surviving{inner}, err
}

func TestWhatSurvivesStaysInTheBufferWhenTheWriterIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.gate = make(chan struct{})
		writer := opened(t, store, Options{Buffer: surviving{}})
		write(t, writer, 1, 2)
		flushed := make(chan error)
		go func() { flushed <- writer.Flush(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var unfinished *CloseError
		if err := writer.Close(ctx); !errors.As(err, &unfinished) || unfinished.RowsKept != 2 {
			t.Fatal(err)
		}
		equal(t, <-flushed, ErrClosed)
		for failed := range writer.Errors() {
			t.Error(failed)
		}
	})
}

func TestWhatIsRefusedIsSetAsideWhereItSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore(&Exception{Code: 60}, &Exception{Code: 60})
		writer := opened(t, store, Options{Buffer: surviving{}, BatchRows: 1, MaxInFlight: 1})
		write(t, writer, 1, 2, 3)
		closed(t, writer)
		found := store.numbers()
		equal(t, found[0], 3)
		slices.Sort(found)
		have(t, found, 1, 2, 3)
	})
}

func TestStatisticsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore(nil, &Exception{Code: 60})
		store.gate = make(chan struct{}, 2)
		writer := opened(t, store, Options{BatchRows: 2, MaxInFlight: 1})
		write(t, writer, 1, 2, 3, 4, 5, 6, 7)
		store.gate <- struct{}{}
		store.gate <- struct{}{}
		synctest.Wait()
		found := writer.Statistics()
		equal(t, found.RowsWritten, 7)
		equal(t, found.RowsStored, 2)
		equal(t, found.RowsFailed, 2)
		equal(t, found.RowsInFlight, 2)
		equal(t, found.RowsWaiting, 1)
		equal(t, found.BytesHeld, 3*12)
		if found.LastError == nil {
			t.Error("the last error is not told")
		}
		close(store.gate)
		closed(t, writer)
	})
}
