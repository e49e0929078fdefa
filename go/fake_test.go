package windrow

import (
	"context"
	"log/slog"
	"sync"
)

// fakeStore is a ClickHouse that can be told to fail. It knows repeats by their ids.
type fakeStore struct {
	mu sync.Mutex
	// answers are the errors of the next inserts, in order; nil stores.
	answers []error
	// judge refuses by what is in a batch.
	judge func(Batch) error
	// gate, if it is there, lets one insert go for each value.
	gate   chan struct{}
	stored map[BatchID]Rows
	order  []BatchID
	// sent are the ids of all attempts.
	sent  []BatchID
	calls int
}

func newFakeStore(answers ...error) *fakeStore {
	return &fakeStore{answers: answers, stored: map[BatchID]Rows{}}
}

func (s *fakeStore) Describe(_ context.Context, table string, columns []string) (Table, error) {
	destination := Destination{Database: "d", Table: table, Columns: columns}
	for range columns {
		destination.Types = append(destination.Types, "UInt64")
	}
	return Table{Destination: destination, Deduplicates: true}, nil
}

func (s *fakeStore) Insert(ctx context.Context, batch Batch) error {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.sent = append(s.sent, batch.ID)
	if len(s.answers) > 0 {
		answer := s.answers[0]
		s.answers = s.answers[1:]
		if answer != nil {
			return answer
		}
	}
	if s.judge != nil {
		if err := s.judge(batch); err != nil {
			return err
		}
	}
	if _, isRepeat := s.stored[batch.ID]; !isRepeat {
		s.stored[batch.ID] = batch.Rows.Clone()
		s.order = append(s.order, batch.ID)
	}
	return nil
}

func (s *fakeStore) callCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// numbers are the rows that are stored, in the order of their batches.
func (s *fakeStore) numbers() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var numbers []uint64
	for _, id := range s.order {
		numbers = append(numbers, numbersOf(s.stored[id])...)
	}
	return numbers
}

func numbersOf(rows Rows) []uint64 {
	var numbers []uint64
	for row := range rows.Each {
		var number uint64
		for index, part := range row {
			number |= uint64(part) << (8 * index)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

type number struct {
	N uint64 `ch:"n"`
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
