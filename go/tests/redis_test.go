package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	windrow "windrow.dev/go"
	"windrow.dev/go/buffertest"
	"windrow.dev/go/redisbuffer"
)

// redisAt is host:port of the tests' Redis.
func redisAt(t testing.TB) string { return environment(t, "WINDROW_TEST_REDIS") }

// command runs one command of Redis's, and gives its answer and that to QUIT as they came.
func command(t testing.TB, parts ...string) string {
	t.Helper()
	connection, err := net.Dial("tcp", redisAt(t))
	done(t, err)
	defer connection.Close()
	var out strings.Builder
	for _, words := range [][]string{parts, {"QUIT"}} {
		fmt.Fprintf(&out, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	_, err = io.WriteString(connection, out.String())
	done(t, err)
	answer, err := io.ReadAll(connection)
	done(t, err)
	if strings.HasPrefix(string(answer), "-") {
		t.Fatalf("%s", answer)
	}
	return string(answer)
}

// relay is a way to Redis that can be cut.
type relay struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu          sync.Mutex
	connections []net.Conn
	isCut       bool
}

func newRelay(t testing.TB) *relay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	done(t, err)
	made := &relay{listener: listener, target: redisAt(t)}
	made.group.Go(made.accept)
	t.Cleanup(func() {
		made.cut()
		made.group.Wait()
	})
	return made
}

func (r *relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.target)
		if err != nil || !r.enter(from, to) {
			_ = from.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			r.group.Go(func() {
				_, _ = io.Copy(pair[1], pair[0])
				_ = pair[1].Close()
			})
		}
	}
}

func (r *relay) enter(connections ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connections = append(r.connections, connections...)
	return !r.isCut
}

// cut ends all connections, and takes no new ones.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = true
	_ = r.listener.Close()
	for _, connection := range r.connections {
		_ = connection.Close()
	}
}

// breakConnections ends those that are there.
func (r *relay) breakConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, connection := range r.connections {
		_ = connection.Close()
	}
	r.connections = nil
}

func (r *relay) address(bucket string) string {
	return fmt.Sprintf("redis://%s/0?bucket=%s&answer_limit=2", r.listener.Addr(), bucket)
}

// place is a bucket, and a way to it that only the buffers of one process have.
type place struct {
	bucket string
	relay  *relay
}

func (p place) Opener() windrow.Opener { return redisbuffer.At(p.relay.address(p.bucket)) }

// Killed cuts the way, and ends the leases: the rest is as if the process had died on another machine.
func (p place) Killed(t *testing.T) buffertest.Place {
	p.relay.cut()
	command(t, "EVAL", "for _, lane in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 0, lane) end "+
		"return 1", "1", "{windrow:"+p.bucket+"}:lanes")
	return place{p.bucket, newRelay(t)}
}

// newBucket is one of the test's own, also when it runs again beside the same Redis.
func newBucket() string { return windrow.NewBatchID().String() }

func TestRedisConformance(t *testing.T) {
	buffertest.Run(t, func(t *testing.T) buffertest.Place {
		return place{newBucket(), newRelay(t)}
	})
}

// listening waits for a buffer's word that rows are kept.
type listening struct{ kept chan uint64 }

func (l listening) Kept(before uint64)                           { l.kept <- before }
func (listening) Refused(windrow.Positions, windrow.Rows, error) {}
func (listening) StoredElsewhere(windrow.Positions, int64)       {}
func (listening) Wake()                                          {}

// appendKept appends so many rows of one byte.
func appendKept(t testing.TB, buffer windrow.Buffer, told listening, count int) {
	rows := windrow.Rows{Bytes: make([]byte, count), Lengths: slices.Repeat([]uint32{1}, count)}
	appended, err := buffer.Append(rows)
	done(t, err)
	for before := uint64(0); before < appended.First+uint64(count); {
		before = <-told.kept
	}
}

// openBuffers opens buffers of ten rows a batch, and closes them at once at the end: one that is cut off takes a
// while.
func openBuffers(t *testing.T, told listening) func(at buffertest.Place) windrow.Buffer {
	var closing sync.WaitGroup
	t.Cleanup(closing.Wait)
	return func(at buffertest.Place) windrow.Buffer {
		buffer, err := at.Opener().OpenBuffer(buffertest.Destination(), windrow.BatchLimits{Rows: 10, Bytes: 1000})
		done(t, err)
		buffer.Attach(told)
		t.Cleanup(func() { closing.Go(func() { _ = buffer.Close() }) })
		return buffer
	}
}

// laneOf is the key of the bucket's only lane.
func laneOf(t *testing.T, bucket string) string {
	lanes := strings.Split(command(t, "ZRANGE", "{windrow:"+bucket+"}:lanes", "0", "-1"), "\r\n")
	return "{windrow:" + bucket + "}:lane:" + lanes[2]
}

// takeOver counts the rows that are found, and says that they are stored.
func takeOver(t *testing.T, buffer windrow.Buffer) (rows uint64) {
	found, err := buffer.LeftOvers()
	done(t, err)
	for _, batch := range found.Batches {
		rows += batch.Rows
		done(t, buffer.Done(batch.ID))
	}
	return rows
}

// Earlier releases sealed a part of an entry when a batch became full in it.
func TestWhatEarlierReleasesHaveCutIsTakenOverWhole(t *testing.T) {
	told := listening{make(chan uint64, 100)}
	opened := openBuffers(t, told)
	for _, batches := range [][]string{{"L0-10"}, {"D0-10"}, {"D0-10", "L10-12", "L17-20"}} {
		at := place{newBucket(), newRelay(t)}
		dead := opened(at)
		for range 3 {
			appendKept(t, dead, told, 7)
		}
		for _, members := range batches {
			command(t, "HSET", laneOf(t, at.bucket)+":batches", windrow.NewBatchID().String(), members)
		}
		next := opened(at.Killed(t))
		equal(t, takeOver(t, next), map[bool]uint64{true: 21, false: 11}[batches[0][0] == 'L'])
		appendKept(t, next, told, 1)
		equal(t, strings.Count(command(t, "KEYS", "{windrow:"+at.bucket+"}*:batches"), "batches"), 0)
	}
}

// It was started again with the state of an earlier time.
func TestARedisThatHasGoneBackIsToldAgain(t *testing.T) {
	told := listening{make(chan uint64, 100)}
	opened := openBuffers(t, told)
	at := place{newBucket(), newRelay(t)}
	writer := opened(at)
	appendKept(t, writer, told, 7)
	appendKept(t, writer, told, 7)
	lane := laneOf(t, at.bucket)
	command(t, "HDEL", lane+":rows", "7:7")
	command(t, "HSET", lane, "next", "7")
	appendKept(t, writer, told, 7)
	equal(t, strings.Count(command(t, "KEYS", lane+"*:rows"), ":rows"), 1)
	equal(t, takeOver(t, opened(at.Killed(t))), 21)
}

// A bucket of 2 MiB, and 25 MiB that come at once: what is stored makes room for the rest.
func TestNothingIsRefusedWhileWhatIsThereCanBeStored(t *testing.T) {
	const calls = 400
	address := fmt.Sprintf("redis://%s/0?bucket=%s&max_bytes=2097152&patience=60", redisAt(t), newBucket())
	writer := open[benchRow](t, nowhere{}, "t", windrow.Options{Buffer: redisbuffer.At(address), FlushInterval: time.Hour})
	row := benchRow{UUID: strings.Repeat("x", 64<<10)}
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			if err := writer.WriteBlocking(context.Background(), row); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	done(t, writer.Close(t.Context()))
	equal(t, writer.Statistics().RowsStored, calls)
}

func TestRowsInRedisSurviveBrokenConnections(t *testing.T) {
	name := table(t, "n UInt64")
	way := newRelay(t)
	writer := open[windrow.Row](t, httpStore(t), name, windrow.Options{
		Buffer: redisbuffer.At(way.address(newBucket())), BatchRows: 50, FlushInterval: 5 * time.Millisecond,
	})
	for n := range 2000 {
		if n%200 == 100 {
			way.breakConnections()
		}
		done(t, writer.WriteBlocking(t.Context(), windrow.Row{n}))
	}
	done(t, writer.Close(t.Context()))
	equal(t, sql(t, "SELECT count(), uniqExact(n), sum(n) FROM "+name), "2000\t2000\t1999000")
}

func TestRowsThatRedisDoesNotKeepComeBack(t *testing.T) {
	name := table(t, "n UInt64")
	way := newRelay(t)
	writer := open[windrow.Row](t, httpStore(t), name, windrow.Options{
		Buffer: redisbuffer.At(way.address(newBucket()) + "&patience=0.1"),
	})
	way.cut()
	done(t, writer.Write(windrow.Row{1}))
	failed := <-writer.Errors()
	equal(t, failed.Reason, windrow.ReasonNotKept)
	equal(t, failed.Rows.Count(), 1)
	if err := writer.WriteBlocking(t.Context(), windrow.Row{2}); err == nil {
		t.Fatal("a row was taken that Redis doesn't have")
	}
	done(t, writer.Close(context.Background()))
	for failed := range writer.Errors() {
		t.Error(failed)
	}
	equal(t, writer.Statistics().BytesHeld, 0)
}

func TestAWriterWhoseLaneWasTakenGoesOn(t *testing.T) {
	name := table(t, "n UInt64")
	bucket := newBucket()
	first, second := place{bucket, newRelay(t)}, place{bucket, newRelay(t)}
	short := "&lease=0.2"
	writer := open[windrow.Row](t, httpStore(t), name, windrow.Options{
		Buffer: redisbuffer.At(first.relay.address(bucket) + short), FlushInterval: time.Hour,
	})
	for n := range 100 {
		done(t, writer.WriteBlocking(t.Context(), windrow.Row{n}))
	}
	// As if it had been silent for too long.
	command(t, "EVAL", "for _, lane in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('HSET', ARGV[1] .. lane, "+
		"'owner', 'nobody') redis.call('ZADD', KEYS[1], 0, lane) end return 1", "1", "{windrow:"+bucket+"}:lanes",
		"{windrow:"+bucket+"}:lane:")
	other := open[windrow.Row](t, httpStore(t), name, windrow.Options{Buffer: redisbuffer.At(second.relay.address(bucket) + short)})
	for n := range 100 {
		done(t, writer.WriteBlocking(t.Context(), windrow.Row{100 + n}))
	}
	done(t, other.Close(t.Context()))
	done(t, writer.Close(t.Context()))
	equal(t, sql(t, "SELECT count(), uniqExact(n) FROM "+name), "200\t200")
}

// lossy is a way to Redis on which the answer to one request is lost. Then nobody gets through until it is mended.
type lossy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup
	// request is what the request has in it; empty before it is set.
	request atomic.Value
	lost    chan struct{}
	mended  atomic.Bool
}

func newLossy(t testing.TB) *lossy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	done(t, err)
	made := &lossy{listener: listener, target: redisAt(t), lost: make(chan struct{})}
	made.request.Store("")
	made.group.Go(made.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		made.group.Wait()
	})
	return made
}

func (l *lossy) isLost() bool {
	select {
	case <-l.lost:
		return !l.mended.Load()
	default:
		return false
	}
}

func (l *lossy) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.target)
		if err != nil || l.isLost() {
			_ = from.Close()
			continue
		}
		var hasCome atomic.Bool
		l.group.Go(func() {
			defer to.Close()
			l.copy(to, from, func(piece []byte) bool {
				request := l.request.Load().(string)
				hasCome.Store(hasCome.Load() || request != "" && bytes.Contains(piece, []byte(request)))
				return true
			})
		})
		l.group.Go(func() {
			defer from.Close()
			l.copy(from, to, func([]byte) bool { return !hasCome.Load() || l.mended.Load() })
			if hasCome.Load() && !l.mended.Load() {
				close(l.lost)
			}
		})
	}
}

func (l *lossy) copy(to io.Writer, from io.Reader, passes func([]byte) bool) {
	piece := make([]byte, 1<<16)
	for {
		count, err := from.Read(piece)
		if err != nil || !passes(piece[:count]) {
			return
		}
		if _, err := to.Write(piece[:count]); err != nil {
			return
		}
	}
}

// gated is a store whose first insert waits.
type gated struct {
	nowhere
	begun chan struct{}
	gate  chan struct{}
	once  sync.Once
}

func (g *gated) Insert(context.Context, windrow.Batch) error {
	g.once.Do(func() {
		close(g.begun)
		<-g.gate
	})
	return nil
}

// What changes between two attempts to restore a lane doesn't change what is written to it: the first may have been
// applied.
func TestALaneIsRestoredOnceThoughTheAnswerIsLost(t *testing.T) {
	way, store := newLossy(t), &gated{begun: make(chan struct{}), gate: make(chan struct{})}
	bucket := newBucket()
	keys := "{windrow:" + bucket + "}*"
	writer := open[benchRow](t, store, "t", windrow.Options{
		Buffer:    redisbuffer.At(fmt.Sprintf("redis://%s/0?bucket=%s", way.listener.Addr(), bucket)),
		BatchRows: 10, FlushInterval: time.Hour,
	})
	for n := range 10 {
		done(t, writer.WriteBlocking(t.Context(), benchRow{ID: int32(n)}))
	}
	<-store.begun
	command(t, "EVAL", "return redis.call('DEL', unpack(redis.call('KEYS', ARGV[1])))", "0", keys)
	way.request.Store("L0-10")
	done(t, writer.Write(benchRow{ID: 10}))
	<-way.lost
	close(store.gate)
	for writer.Statistics().RowsStored < 10 {
		runtime.Gosched()
	}
	way.mended.Store(true)
	done(t, writer.Close(t.Context()))
	equal(t, writer.Statistics().RowsStored, 11)
	for _, kind := range []string{":rows", ":batches"} {
		equal(t, command(t, "KEYS", keys+kind), "*0\r\n+OK\r\n")
	}
}

type benchRow struct {
	ID       int32  `ch:"id"`
	UUID     string `ch:"uuid"`
	InsertTS string `ch:"insert_ts"`
}

// nowhere stores everything at once.
type nowhere struct{}

func (nowhere) Describe(_ context.Context, table string, columns []string) (windrow.Table, error) {
	destination := windrow.Destination{Table: table, Columns: columns, Types: []string{"Int32", "String", "String"}}
	return windrow.Table{Destination: destination, Deduplicates: true}, nil
}

func (nowhere) Insert(context.Context, windrow.Batch) error { return nil }

// BenchmarkRedis counts until all rows are confirmed by Redis, stored and released.
func BenchmarkRedis(b *testing.B) {
	writer := open[benchRow](b, nowhere{}, "t", windrow.Options{Buffer: redisbuffer.At("redis://" + redisAt(b) + "/0?bucket=bench")})
	row := benchRow{1, "00000000-0000-4000-8000-000000000000", "02 Jan 06 15:04 MST"}
	before := mallocs()
	b.ResetTimer()
	for range b.N {
		row.ID++
		err := writer.Write(row)
		if err == windrow.ErrFull {
			err = writer.WriteBlocking(context.Background(), row)
		}
		done(b, err)
	}
	done(b, writer.Close(context.Background()))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(mallocs()-before)/float64(b.N), "allocs/row")
	equal(b, writer.Statistics().RowsStored, uint64(b.N))
}

func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}
