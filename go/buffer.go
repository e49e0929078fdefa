package windrow

// Buffer is a place for rows. Three of them come with the project (memory, disk, Redis); programs may bring
// their own, and check it with the package buffertest.
//
// A buffer keeps rows in the order in which they were appended, cuts them into batches, and forgets a batch
// when it is told that the batch is done. It sends nothing and decides nothing: a [Writer] does.
//
// Every buffer promises:
//  1. An append takes all of its rows or none. When it answers KeptNow they are kept, as far as the buffer's promise
//     goes.
//  2. A batch's id and members are recorded before Load gives its rows, and never change. After a crash, a buffer that
//     survives brings them back under the same id.
//  3. Nothing is forgotten before Done.
//  4. Positions count this writer's rows from 0, in the order of appending. A batch has a contiguous range of them.
//
// All calls may come from any goroutine. Append may be called while another call is under way, and must not
// wait for it if that waits for a disk or a network. No call calls Events before it returns, and no lock is
// held while Events is called.
type Buffer interface {
	// Attach is called once, before anything else.
	Attach(events Events)
	// Survives says whether rows survive the end of the process.
	Survives() bool
	// Append takes rows, without waiting for room. It answers ErrFull, ErrClosed, a *TooLargeError, or what
	// failed. The rows are the caller's again when it returns.
	Append(rows Rows) (Appended, error)
	// NextPosition says how many rows this writer has appended.
	NextPosition() uint64
	// Open says what waits to be sealed.
	Open() OpenRows
	// Seal makes a batch of the oldest rows that wait, as many as a batch may have. It gives nil if none
	// wait.
	Seal() (*Sealed, error)
	// Load gives a batch's rows, the same ones each time. They stay as they are until Done.
	Load(id BatchID) (Rows, error)
	// Split cuts a batch before each of these rows into new ones, which take its place. The cuts ascend, and
	// lie inside of the batch.
	Split(id BatchID, cuts []int) ([]Sealed, error)
	// Done says that the batch came to its end: its rows are stored, or were handed over with their error.
	Done(id BatchID) error
	// LeftOvers gives batches of processes that have died, each of them once. It is called at the start, and
	// then from time to time.
	LeftOvers() (LeftOvers, error)
	// Close says that nothing will be appended any more. What is not done stays where it is, if the buffer
	// survives.
	Close() error
}

// Opener makes the buffer of a writer that is being opened. The packages of buffers have functions that give
// one.
type Opener interface {
	OpenBuffer(destination *Destination, limits BatchLimits) (Buffer, error)
}

// BatchLimits says how large batches may be. A single row may be larger.
type BatchLimits struct {
	Rows  int
	Bytes int
}

// Positions are rows of one writer, from the first to behind the last.
type Positions struct {
	From uint64
	To   uint64
}

// Count says how many rows there are.
func (p Positions) Count() uint64 { return p.To - p.From }

// Kept says whether a buffer's promise holds already.
type Kept int

const (
	// KeptNow means that the promise holds.
	KeptNow Kept = iota
	// KeptLater means that Events will tell when it does, or that the rows were refused. Only a buffer that
	// survives answers so.
	KeptLater
)

// Ready says whether an append is a reason to look at what waits.
type Ready int

const (
	// NotReady means that nothing has changed for the writer.
	NotReady Ready = iota
	// ReadyFirstRow means that nothing waited before.
	ReadyFirstRow
	// ReadyFull means that a batch has become full.
	ReadyFull
)

// Appended is what an append has come to.
type Appended struct {
	// First is the position of the first of the rows.
	First uint64
	Kept  Kept
	Ready Ready
}

// OpenRows is what waits to be sealed.
type OpenRows struct {
	Rows uint64
	// FullBatches says how many batches of them are full.
	FullBatches uint64
}

// Sealed is a batch whose id and members are fixed.
type Sealed struct {
	ID   BatchID
	Rows uint64
	// Positions says which of this writer's rows it has. It is empty for a batch of another's rows alone.
	Positions Positions
	// HeldBytes is what it counts for in the writer's MaxBytes: what was appended to it by this writer.
	HeldBytes int64
	// Destination says where its rows go, if that is not where this writer's go.
	Destination *Destination
}

// LeftOvers is what was found of processes that have died.
type LeftOvers struct {
	Batches []Sealed
	// DamagedBytes could not be read as what was written. What they held is lost, or in them.
	DamagedBytes uint64
	// Complaints has a sentence for each thing that is wrong, with file and offset.
	Complaints []string
}

// Events is how a buffer tells what became of earlier appends, from a goroutine of its own.
type Events interface {
	// Kept says that all rows before this position are kept.
	Kept(before uint64)
	// Refused says that these rows, of which Append answered KeptLater, are not kept: they were not taken.
	Refused(positions Positions, rows Rows, err error)
	// StoredElsewhere says that these rows were stored by another process.
	StoredElsewhere(positions Positions, heldBytes int64)
	// Wake says that there is something to be looked at.
	Wake()
}
