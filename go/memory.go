package windrow

import "sync"

// maxSpareBytes is the memory that is kept for use again.
const maxSpareBytes = 8 << 20

// memoryBuffer keeps rows in the memory of the process, gone with it.
//
// Rows are appended to a chunk until it is as large as a batch may be; then another one is begun. Sealing
// takes the oldest chunk as it is, so nothing is copied on the way from an append to a socket, and the memory
// of stored batches is used again.
type memoryBuffer struct {
	limits BatchLimits

	mu         sync.Mutex
	next       uint64
	open       *chunk
	full       []*chunk
	rowsInFull uint64
	sealed     map[BatchID]piece
	spare      []*chunk
	spareBytes int
	closed     bool
}

type chunk struct {
	Rows
	// pieces of it that are not done.
	pieces int
}

// piece is a batch: a chunk, or a part of one.
type piece struct {
	chunk *chunk
	rows  Rows
	first uint64
}

// Memory gives buffers in the memory of the process. It is what Options has without another one.
func Memory() Opener { return memoryOpener{} }

type memoryOpener struct{}

// OpenBuffer makes an empty buffer.
func (memoryOpener) OpenBuffer(_ *Destination, limits BatchLimits) (Buffer, error) {
	limits = BatchLimits{Rows: max(limits.Rows, 1), Bytes: max(limits.Bytes, 1)}
	return &memoryBuffer{limits: limits, open: &chunk{}, sealed: map[BatchID]piece{}}, nil
}

func (b *memoryBuffer) Attach(Events) {}

func (b *memoryBuffer) Survives() bool { return false }

func (b *memoryBuffer) Append(rows Rows) (Appended, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return Appended{}, ErrClosed
	}
	appended := Appended{First: b.next}
	if b.openRows() == 0 {
		appended.Ready = ReadyFirstRow
	}
	fits := len(b.open.Lengths)+len(rows.Lengths) < b.limits.Rows && len(b.open.Bytes)+len(rows.Bytes) < b.limits.Bytes
	if fits {
		b.push(rows)
	} else if b.appendInParts(rows) {
		appended.Ready = ReadyFull
	}
	return appended, nil
}

func (b *memoryBuffer) push(rows Rows) {
	b.open.push(rows)
	b.next += uint64(len(rows.Lengths))
}

// appendInParts takes many rows, or a row that doesn't fit. It says whether a batch has become full.
func (b *memoryBuffer) appendInParts(rows Rows) bool {
	hasFilled := false
	for rows.Count() > 0 {
		least := 0
		if b.open.Count() == 0 {
			least = 1
		}
		count := rows.Fitting(b.limits.Rows-b.open.Count(), max(b.limits.Bytes-len(b.open.Bytes), 0), least)
		b.push(rows.Part(0, count))
		rows = rows.Part(count, rows.Count())
		if rows.Count() > 0 || b.isFull(b.open) {
			b.closeOpen()
			hasFilled = true
		}
	}
	return hasFilled
}

func (b *memoryBuffer) isFull(chunk *chunk) bool {
	return chunk.Count() >= b.limits.Rows || len(chunk.Bytes) >= b.limits.Bytes
}

func (b *memoryBuffer) closeOpen() {
	b.rowsInFull += uint64(b.open.Count())
	b.full = append(b.full, b.open)
	b.open = b.fresh()
}

// fresh gives an empty chunk: one that was used before, or one of the size that the last one has come to.
func (b *memoryBuffer) fresh() *chunk {
	if last := len(b.spare) - 1; last >= 0 {
		spare := b.spare[last]
		b.spare = b.spare[:last]
		b.spareBytes -= spare.capacityBytes()
		return spare
	}
	return &chunk{Rows: Rows{Bytes: make([]byte, 0, cap(b.open.Bytes)), Lengths: make([]uint32, 0, cap(b.open.Lengths))}}
}

func (c *chunk) capacityBytes() int { return cap(c.Bytes) + 4*cap(c.Lengths) }

func (b *memoryBuffer) openRows() uint64 { return b.rowsInFull + uint64(b.open.Count()) }

func (b *memoryBuffer) NextPosition() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

func (b *memoryBuffer) Open() OpenRows {
	b.mu.Lock()
	defer b.mu.Unlock()
	return OpenRows{Rows: b.openRows(), FullBatches: uint64(len(b.full))}
}

func (b *memoryBuffer) Seal() (*Sealed, error) {
	id := NewBatchID()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.openRows() == 0 {
		return nil, nil
	}
	if len(b.full) == 0 {
		b.closeOpen()
	}
	taken := b.full[0]
	first := b.next - b.openRows()
	b.full = append(b.full[:0], b.full[1:]...)
	b.rowsInFull -= uint64(taken.Count())
	taken.pieces = 1
	sealed := b.enter(id, piece{chunk: taken, rows: taken.Rows, first: first})
	return &sealed, nil
}

func (b *memoryBuffer) enter(id BatchID, piece piece) Sealed {
	b.sealed[id] = piece
	rows := uint64(piece.rows.Count())
	positions := Positions{From: piece.first, To: piece.first + rows}
	return Sealed{ID: id, Rows: rows, Positions: positions, HeldBytes: piece.rows.HeldBytes()}
}

func (b *memoryBuffer) Load(id BatchID) (Rows, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.sealed[id]
	if !ok {
		return Rows{}, ErrUnknownBatch
	}
	return found.rows, nil
}

func (b *memoryBuffer) Split(id BatchID, cuts []int) ([]Sealed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	parent, ok := b.sealed[id]
	if !ok {
		return nil, ErrUnknownBatch
	}
	delete(b.sealed, id)
	children := make([]Sealed, 0, len(cuts)+1)
	start := 0
	for index := range len(cuts) + 1 {
		end := parent.rows.Count()
		if index < len(cuts) {
			end = cuts[index]
		}
		child := piece{chunk: parent.chunk, rows: parent.rows.Part(start, end), first: parent.first + uint64(start)}
		children = append(children, b.enter(NewBatchID(), child))
		start = end
	}
	parent.chunk.pieces += len(cuts)
	return children, nil
}

func (b *memoryBuffer) Done(id BatchID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	done, ok := b.sealed[id]
	if !ok {
		return ErrUnknownBatch
	}
	delete(b.sealed, id)
	done.chunk.pieces--
	if done.chunk.pieces == 0 && b.spareBytes+done.chunk.capacityBytes() <= maxSpareBytes {
		done.chunk.Bytes, done.chunk.Lengths = done.chunk.Bytes[:0], done.chunk.Lengths[:0]
		b.spare = append(b.spare, done.chunk)
		b.spareBytes += done.chunk.capacityBytes()
	}
	return nil
}

func (b *memoryBuffer) LeftOvers() (LeftOvers, error) { return LeftOvers{}, nil }

// Close keeps what is appended from now on from being seen by nobody.
func (b *memoryBuffer) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}
