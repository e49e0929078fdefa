// Package redisbuffer keeps the rows of writers in a Redis, shared by many processes and machines; they
// survive the end of their process.
//
// A bucket has lanes. Each writer has a lane of its own, with an owner, a lease and the table's description;
// rows in it are numbered by their positions. Under {windrow:<bucket>} lie:
//
//	:lanes                sorted set  names of lanes, by when their leases end (Redis's own clock, in ms)
//	:bytes                string      bytes of all entries of the bucket, for the limit
//	:lane:<name>          hash        owner, its process, destination, number of the next row, serial of the last record
//	:lane:<name>:rows     hash        entries: "first row:rows" to the rows
//	:lane:<name>:batches  hash        batch id to its rows, live or done
//	:lane:<name>:gone     string      for a day: the lane was emptied, and how far it went
//
// Calls of the buffer never wait: they change what is known here and queue what Redis has to be told. One
// goroutine sends the queue in pipelines. Everything it sends is a script, and every script begins with the
// question whether the lane is still its caller's. Rows are kept when their entry's script has answered; a
// batch's rows are given out to be sent once the batch's record has. Rows stay in this process's memory until
// they are stored, so a batch is written to Redis once and read never, except by a process that takes it
// over.
//
// The connection may break between a command and its answer; then everything unanswered is sent again. An
// entry says where it begins, and the lane where the next one has to: an entry that is there is not added
// again, one that comes late neither. Records carry a serial number to the same end. An append that Redis did
// not confirm in time is refused, and withdrawn: the next thing that Redis hears of it deletes it. Only a
// process that dies between the two, or is thought dead, leaves rows that were refused and are stored anyway.
//
// A lane whose owner is known to be dead (its process ran on this machine and does so no more), which was
// left, or whose lease has run out is taken over by the next writer for the same table: of two that try, one
// wins. Batches keep their ids and members; rows that were in none are made new ones of, recorded before they
// are sent. That goes for every row, also the rest of an entry: earlier releases cut entries where a batch
// became full. What was thought dead and is not finds out with its next word to Redis, and goes on in another
// lane. Writers in Rust, Python and Go take over each other's lanes.
//
// It is not for Redis as a cache: with an eviction policy that drops keys, rows are dropped. How much
// survives the end of Redis itself is Redis's to say (appendonly, appendfsync).
package redisbuffer

import (
	"fmt"
	"sync"
	"time"

	windrow "windrow.dev/go"
)

// At gives buffers in a Redis: redis://[user:password@]host[:port][/db], and behind a question mark bucket
// (windrow), lease (15 s), patience (10 s), answer_limit (5 s), all in seconds, and max_bytes (256 MiB, for
// the bucket). rediss:// is TLS, with ca_file for certificates that the system does not trust. Several hosts
// with sentinel=<name of the master> are Sentinels, with cluster=true nodes of a cluster.
func At(address string) windrow.Opener { return opener(address) }

type opener string

// OpenBuffer connects, registers a lane, and takes over what dead writers for the same table have left.
func (o opener) OpenBuffer(destination *windrow.Destination, limits windrow.BatchLimits) (windrow.Buffer, error) {
	address, err := parseAddress(string(o))
	if err != nil {
		return nil, err
	}
	buffer := newBuffer(address, destination, limits)
	link, err := openLink(address)
	if err == nil {
		err = buffer.takePlace(link)
	}
	if err != nil {
		link.close()
		return nil, fmt.Errorf("windrow: the buffer %s: %w", address, err)
	}
	go newWorker(buffer, link).run()
	return buffer, nil
}

type buffer struct {
	address     address
	bucket      bucket
	destination *windrow.Destination
	described   []byte
	limits      windrow.BatchLimits
	owner       string
	process     string
	events      windrow.Events
	// rung has something when there may be something to be told to Redis.
	rung  chan struct{}
	ended chan struct{}
	// attached is closed when events is there.
	attached chan struct{}
	once     sync.Once

	mu    sync.Mutex
	state state
}

func newBuffer(address address, destination *windrow.Destination, limits windrow.BatchLimits) *buffer {
	described, _ := destination.MarshalBinary()
	limits = windrow.BatchLimits{Rows: max(limits.Rows, 1), Bytes: max(limits.Bytes, 1)}
	return &buffer{
		address: address, bucket: newBucket(address), destination: destination, described: described, limits: limits,
		owner: windrow.NewBatchID().String(), process: ownIdentity(),
		rung: make(chan struct{}, 1), ended: make(chan struct{}), attached: make(chan struct{}),
		state: state{limits: limits, batches: map[windrow.BatchID]*batch{}},
	}
}

func (b *buffer) takePlace(link *link) error {
	lane := b.bucket.lane(windrow.NewBatchID().String(), b.owner)
	if err := b.register(link, lane); err != nil {
		return err
	}
	b.state.enterOwn(lane)
	return b.adoptAll(link)
}

// register makes a lane of this writer's, which may be there already.
func (b *buffer) register(link *link, lane lane) error {
	_, err := link.judge(b.bucket, func(p *pipeline) { p.register(lane, b.process, b.described) })
	return err
}

func (b *buffer) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

func (b *buffer) Attach(events windrow.Events) {
	b.once.Do(func() {
		b.events = events
		close(b.attached)
	})
}

func (b *buffer) Survives() bool { return true }

func (b *buffer) Append(rows windrow.Rows) (windrow.Appended, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.isClosed {
		return windrow.Appended{}, windrow.ErrClosed
	}
	first := b.state.append(rows, time.Now().Add(b.address.patience))
	b.ring()
	return windrow.Appended{First: first, Kept: windrow.KeptLater}, nil
}

func (b *buffer) NextPosition() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.nextPosition
}

func (b *buffer) Open() windrow.OpenRows {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.open()
}

func (b *buffer) Seal() (*windrow.Sealed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.ring()
	return b.state.seal(), nil
}

func (b *buffer) Load(id windrow.BatchID) (windrow.Rows, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.ring()
	return b.state.load(id)
}

func (b *buffer) Split(id windrow.BatchID, cuts []int) ([]windrow.Sealed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.ring()
	return b.state.split(id, cuts)
}

func (b *buffer) Done(id windrow.BatchID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.ring()
	return b.state.done(id)
}

func (b *buffer) LeftOvers() (windrow.LeftOvers, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.state.found
	b.state.found = windrow.LeftOvers{}
	return found, nil
}

// Close waits for the goroutine to have said what it had to say, within a bound.
func (b *buffer) Close() error {
	b.mu.Lock()
	b.state.isClosed = true
	b.mu.Unlock()
	// A buffer that nobody was attached to has nobody to tell.
	b.Attach(nobody{})
	b.ring()
	<-b.ended
	return nil
}

// nobody hears nothing.
type nobody struct{}

func (nobody) Kept(uint64)                                    {}
func (nobody) Refused(windrow.Positions, windrow.Rows, error) {}
func (nobody) StoredElsewhere(windrow.Positions, int64)       {}
func (nobody) Wake()                                          {}
