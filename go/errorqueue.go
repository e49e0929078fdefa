package windrow

import "sync"

// errorQueue hands errors over without ever waiting for whoever reads them. What nobody takes gives way to
// newer ones, oldest first, and is counted.
type errorQueue struct {
	mu       sync.Mutex
	out      chan *WriteError
	maxBytes int64
	// sizes of the errors that were put in; of them the last len(out) are still there.
	sizes   []int64
	dropped uint64
	closed  bool
}

func newErrorQueue(maxErrors int, maxBytes int64) *errorQueue {
	return &errorQueue{out: make(chan *WriteError, max(maxErrors, 1)), maxBytes: maxBytes}
}

func (q *errorQueue) push(failed *WriteError) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.dropped++
		return
	}
	size := failed.Rows.HeldBytes()
	for len(q.out) == cap(q.out) || len(q.out) > 0 && q.heldBytes()+size > q.maxBytes {
		select {
		case <-q.out:
			q.dropped++
		default:
		}
	}
	if size > q.maxBytes {
		q.dropped++
		return
	}
	q.out <- failed
	q.sizes = append(q.sizes, size)
}

func (q *errorQueue) heldBytes() int64 {
	q.sizes = q.sizes[max(len(q.sizes)-len(q.out), 0):]
	var sum int64
	for _, size := range q.sizes {
		sum += size
	}
	return sum
}

func (q *errorQueue) droppedCount() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// close ends the channel: who ranges over it gets what is left, and then the end.
func (q *errorQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.out)
	}
}
