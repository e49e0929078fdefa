package windrow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each test runs in a bubble of its own: time passes when nothing else happens, and a goroutine that is left
// behind fails it.

func opened(t *testing.T, store Store, options Options) *Writer[number] {
	t.Helper()
	options.Logger = quiet()
	writer, err := Open[number](t.Context(), store, "t", options)
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

func write(t *testing.T, writer *Writer[number], numbers ...uint64) {
	t.Helper()
	for _, n := range numbers {
		if err := writer.Write(number{n}); err != nil {
			t.Fatal(err)
		}
	}
}

func closed(t *testing.T, writer *Writer[number]) {
	t.Helper()
	if err := writer.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("found %v, wanted %v", found, wanted)
	}
}

func have(t *testing.T, found []uint64, wanted ...uint64) {
	t.Helper()
	if !slices.Equal(found, wanted) {
		t.Fatalf("found %v, wanted %v", found, wanted)
	}
}

func TestRowsWaitForOthersUntilTheirTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		writer := opened(t, store, Options{FlushInterval: time.Second})
		write(t, writer, 1)
		time.Sleep(900 * time.Millisecond)
		write(t, writer, 2)
		synctest.Wait()
		equal(t, store.callCount(), 0)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		have(t, store.numbers(), 1, 2)
		equal(t, store.callCount(), 1)
		closed(t, writer)
	})
}

func TestAFullBatchGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		writer := opened(t, store, Options{BatchRows: 2})
		write(t, writer, 1, 2, 3)
		synctest.Wait()
		have(t, store.numbers(), 1, 2)
		closed(t, writer)
		have(t, store.numbers(), 1, 2, 3)
	})
}

func TestBatchesAreCutByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		writer := opened(t, store, Options{BatchBytes: 16, MaxInFlight: 1})
		if err := writer.WriteRows([]number{{1}, {2}, {3}, {4}, {5}}); err != nil {
			t.Fatal(err)
		}
		closed(t, writer)
		equal(t, store.callCount(), 3)
		have(t, store.numbers(), 1, 2, 3, 4, 5)
	})
}

func TestAFullBufferIsAnErrorAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.gate = make(chan struct{})
		writer := opened(t, store, Options{MaxBytes: 24, BatchRows: 1})
		write(t, writer, 1, 2)
		equal(t, writer.Write(number{3}), ErrFull)
		taken, err := writer.TryWrite(number{3})
		equal(t, taken, false)
		equal(t, err, nil)
		var tooLarge *TooLargeError
		if err := writer.WriteRows(make([]number, 3)); !errors.As(err, &tooLarge) {
			t.Fatal(err)
		}
		blocked := make(chan error)
		go func() { blocked <- writer.WriteBlocking(context.Background(), number{4}) }()
		synctest.Wait()
		store.gate <- struct{}{}
		equal(t, <-blocked, nil)
		close(store.gate)
		closed(t, writer)
		found := store.numbers()
		slices.Sort(found)
		have(t, found, 1, 2, 4)
		equal(t, writer.Write(number{5}), ErrClosed)
		equal(t, writer.Statistics().BytesHeld, 0)
	})
}

func TestWhoWaitsForRoomIsLetGoByTheContextAndByTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.gate = make(chan struct{})
		writer := opened(t, store, Options{MaxBytes: 12})
		write(t, writer, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		equal(t, writer.WriteBlocking(ctx, number{2}), context.DeadlineExceeded)
		blocked := make(chan error)
		go func() { blocked <- writer.WriteBlocking(context.Background(), number{3}) }()
		synctest.Wait()
		ended := make(chan error)
		go func() { ended <- writer.Close(context.Background()) }()
		equal(t, <-blocked, ErrClosed)
		close(store.gate)
		equal(t, <-ended, nil)
		have(t, store.numbers(), 1)
	})
}

func TestALostAnswerIsRepeatedUnderTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore(errors.New("connection reset"), &Exception{Code: 319, Text: "unknown"}, errors.New("again"))
		writer := opened(t, store, Options{})
		write(t, writer, 1, 2)
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		have(t, store.numbers(), 1, 2)
		equal(t, writer.Statistics().Retries, 3)
		equal(t, len(store.sent), 4)
		equal(t, len(slices.Compact(store.sent)), 1)
		closed(t, writer)
	})
}

func TestOnlyTheGuiltyRowsComeBack(t *testing.T) {
	for _, isNamed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore()
			store.judge = func(batch Batch) error {
				for index, n := range numbersOf(batch.Rows) {
					if n == 13 || n == 66 {
						text := "a value"
						if isNamed {
							text = fmt.Sprintf("Constraint `c` is violated at row %d. Expression: x", index+1)
						}
						return &Exception{Code: 469, Text: text}
					}
				}
				return nil
			}
			writer := opened(t, store, Options{BatchRows: 50})
			var wanted []uint64
			for n := range uint64(100) {
				write(t, writer, n)
				if n != 13 && n != 66 {
					wanted = append(wanted, n)
				}
			}
			closed(t, writer)
			found := store.numbers()
			slices.Sort(found)
			have(t, found, wanted...)
			var back []uint64
			for failed := range writer.Errors() {
				equal(t, failed.Reason, ReasonValues)
				back = append(back, numbersOf(failed.Rows)...)
			}
			slices.Sort(back)
			have(t, back, 13, 66)
		})
	}
}

func TestWhatIsRefusedComesBackWithTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := &Exception{Code: 60, Text: "Code: 60. DB::Exception: no table"}
		writer := opened(t, newFakeStore(refusal), Options{})
		write(t, writer, 1, 2)
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		failed := <-writer.Errors()
		equal(t, failed.Reason, ReasonRefused)
		have(t, numbersOf(failed.Rows), 1, 2)
		if found := (*Exception)(nil); !errors.As(failed, &found) || found != refusal {
			t.Fatal(failed)
		}
		closed(t, writer)
	})
}

func TestRetriesEndAndTheRowsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.judge = func(Batch) error { return errors.New("away") }
		writer := opened(t, store, Options{})
		write(t, writer, 7)
		failed := <-writer.Errors()
		equal(t, failed.Reason, ReasonGaveUp)
		have(t, numbersOf(failed.Rows), 7)
		closed(t, writer)
	})
}

func TestCloseGivesBackWhatItHadNoTimeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.gate = make(chan struct{})
		writer := opened(t, store, Options{BatchRows: 2, MaxInFlight: 1})
		write(t, writer, 1, 2, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := writer.Close(ctx)
		var unfinished *CloseError
		if !errors.As(err, &unfinished) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		equal(t, unfinished.RowsHandedOver, 3)
		first, second := <-writer.Errors(), <-writer.Errors()
		equal(t, first.Reason, ReasonMaybeStored)
		equal(t, second.Reason, ReasonClosed)
		have(t, append(numbersOf(first.Rows), numbersOf(second.Rows)...), 1, 2, 3)
	})
}

func TestErrorsThatNobodyReadsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.judge = func(Batch) error { return &Exception{Code: 60} }
		writer := opened(t, store, Options{BatchRows: 1, MaxErrors: 3, MaxInFlight: 1})
		for n := range uint64(10) {
			write(t, writer, n)
		}
		closed(t, writer)
		equal(t, writer.Statistics().ErrorsDropped, 7)
		var last []uint64
		for failed := range writer.Errors() {
			last = append(last, numbersOf(failed.Rows)...)
		}
		have(t, last, 7, 8, 9)
	})
}

func TestErrorsAreBoundedByBytes(t *testing.T) {
	queue := newErrorQueue(100, 100)
	for range 10 {
		queue.push(&WriteError{Rows: Rows{Bytes: make([]byte, 40), Lengths: []uint32{40}}})
	}
	equal(t, len(queue.out), 2)
	equal(t, queue.droppedCount(), 8)
	<-queue.out
	queue.push(&WriteError{Rows: Rows{Bytes: make([]byte, 40), Lengths: []uint32{40}}})
	equal(t, queue.droppedCount(), 8)
	queue.push(&WriteError{Rows: Rows{Bytes: make([]byte, 400), Lengths: []uint32{400}}})
	equal(t, len(queue.out), 0)
}

func TestBatchesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore(errors.New("away"), errors.New("away"))
		writer := opened(t, store, Options{Ordered: true, BatchRows: 1})
		write(t, writer, 1, 2, 3, 4, 5)
		closed(t, writer)
		have(t, store.numbers(), 1, 2, 3, 4, 5)
	})
}

func TestManyGoroutinesWriteAndEachRowIsStoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []error
		for index := range 60 {
			if index%3 == 0 {
				answers = append(answers, errors.New("away"))
			}
			answers = append(answers, nil)
		}
		store := newFakeStore(answers...)
		writer := opened(t, store, Options{BatchRows: 100, MaxBytes: 10_000})
		var group sync.WaitGroup
		const writers, each = 8, 1000
		for at := range uint64(writers) {
			group.Go(func() {
				for n := range uint64(each) {
					if err := writer.WriteBlocking(context.Background(), number{at*each + n}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		closed(t, writer)
		found := store.numbers()
		slices.Sort(found)
		equal(t, len(slices.Compact(found)), writers*each)
		statistics := writer.Statistics()
		equal(t, statistics.RowsStored, writers*each)
		equal(t, statistics.BytesHeld, 0)
	})
}

func TestNothingIsTakenOfACallWithABadRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		writer, err := Open[Row](t.Context(), store, "t", Options{Columns: []string{"n"}, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		var failed *ValueError
		if err := writer.WriteRows([]Row{{1}, {-1}}); !errors.As(err, &failed) || failed.Column != "n" {
			t.Fatal(err)
		}
		equal(t, writer.Statistics().RowsWritten, 0)
		if err := writer.Write(Row{5}); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		have(t, store.numbers(), 5)
	})
}

// elsewhere is a buffer in memory whose rows another process takes, which dies before it has stored them.
type elsewhere struct {
	Buffer
	events Events

	mu    sync.Mutex
	taken Sealed
	found LeftOvers
}

func (e *elsewhere) OpenBuffer(destination *Destination, limits BatchLimits) (Buffer, error) {
	inner, err := Memory().OpenBuffer(destination, limits)
	e.Buffer = inner
	return e, err
}

func (e *elsewhere) Attach(events Events) { e.events = events }

func (e *elsewhere) Survives() bool { return true }

func (e *elsewhere) take(t *testing.T) {
	sealed, err := e.Seal()
	if err != nil || sealed == nil {
		t.Fatal(sealed, err)
	}
	e.taken = *sealed
}

func (e *elsewhere) comeBack() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found.Batches = []Sealed{{ID: e.taken.ID, Rows: e.taken.Rows}}
}

func (e *elsewhere) LeftOvers() (LeftOvers, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := e.found
	e.found = LeftOvers{}
	return found, nil
}

func (e *elsewhere) Done(id BatchID) error {
	if id == e.taken.ID {
		go e.events.StoredElsewhere(e.taken.Positions, e.taken.HeldBytes)
	}
	return e.Buffer.Done(id)
}

func TestClosingSaysThatRowsAreAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buffer := &elsewhere{}
		writer := opened(t, newFakeStore(), Options{Buffer: buffer, FlushInterval: time.Hour})
		write(t, writer, 1, 2)
		buffer.take(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var kept *CloseError
		if err := writer.Close(ctx); !errors.As(err, &kept) || kept.RowsKept != 2 {
			t.Fatal(err)
		}
	})
}

func TestRowsThatComeBackToAClosingWriterAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, buffer := newFakeStore(), &elsewhere{}
		writer := opened(t, store, Options{Buffer: buffer, FlushInterval: time.Hour})
		write(t, writer, 1, 2)
		synctest.Wait()
		buffer.take(t)
		ended := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			ended <- writer.Close(ctx)
		}()
		time.Sleep(time.Minute)
		buffer.comeBack()
		equal(t, <-ended, nil)
		have(t, store.numbers(), 1, 2)
		equal(t, writer.Statistics().BytesHeld, 0)
	})
}
