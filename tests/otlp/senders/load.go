package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// The load generator of a benchmark that shares its CPUs with what is measured. So requests are bytes that were made before, and each
// record's time is all that is written into them: it is the record's number in microseconds after the given time, and so its name.
const (
	export = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	// Requests of a connection that are under way at once, where they are sent when they are due.
	underWay = 8
	// Requests differ in their service and in all that their records say.
	kinds = 16
	// Stands for a record's time until it is known.
	mark    = uint64(0x5eed5eed00000000)
	refused = 10 * time.Millisecond
)

// order is a line of stdin; measured is the answer to it.
type order struct {
	Seconds float64 `json:"seconds"`
	// At 0 a connection sends a request when the one before is answered.
	RequestsPerSecond float64 `json:"requests_per_second"`
}

type measured struct {
	Rows         int64   `json:"rows"`
	Seconds      float64 `json:"seconds"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	Max          float64 `json:"max_ms"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	Refused      int64   `json:"refused"`
	RequestBytes int     `json:"request_bytes"`
}

// raw hands on bytes as they are.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(of any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(of.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, into any) error {
	*into.(*[]byte) = data.Materialize()
	return nil
}

type request struct {
	bytes []byte
	// Where the times of its records are.
	times []int
}

func (r *request) number(from int64, first int64) {
	for at, place := range r.times {
		binary.LittleEndian.PutUint64(r.bytes[place:], uint64(from+(first+int64(at))*1000))
	}
}

// prepared is what a web service says of the requests that it has served.
func prepared(kind, records int) (*request, error) {
	chance := rand.New(rand.NewSource(int64(kind)))
	made := plog.NewLogs()
	resource := made.ResourceLogs().AppendEmpty()
	of := resource.Resource().Attributes()
	of.PutStr("service.name", fmt.Sprintf("service-%d", kind))
	of.PutStr("service.version", "1.27.3")
	of.PutStr("deployment.environment.name", "production")
	of.PutStr("host.name", fmt.Sprintf("node-%d", kind%4))
	of.PutStr("k8s.namespace.name", "shop")
	of.PutStr("k8s.pod.name", fmt.Sprintf("service-%d-5f6c9d7b8-%05x", kind, chance.Intn(1<<20)))
	scope := resource.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("shop.http")
	scope.Scope().SetVersion("2.1.0")
	for at := range records {
		method := []string{"GET", "GET", "GET", "POST", "PUT"}[chance.Intn(5)]
		path := fmt.Sprintf("/api/v1/orders/%d", chance.Intn(1_000_000))
		code := []int64{200, 200, 200, 200, 201, 404, 500}[chance.Intn(7)]
		took := float64(chance.Intn(100_000)) / 1000
		record := scope.LogRecords().AppendEmpty()
		record.SetTimestamp(marked(at))
		record.SetSeverityNumber(plog.SeverityNumberInfo)
		record.SetSeverityText("INFO")
		record.Body().SetStr(fmt.Sprintf("%s %s answered with %d in %.3f ms to 10.0.%d.%d", method, path, code, took, kind, chance.Intn(256)))
		values := record.Attributes()
		values.PutStr("http.request.method", method)
		values.PutStr("url.path", path)
		values.PutInt("http.response.status_code", code)
		values.PutDouble("duration_ms", took)
		values.PutStr("thread.name", fmt.Sprintf("worker-%d", chance.Intn(32)))
		var trace [16]byte
		var span [8]byte
		chance.Read(trace[:])
		chance.Read(span[:])
		record.SetTraceID(trace)
		record.SetSpanID(span)
	}
	written, err := plogotlp.NewExportRequestFromLogs(made).MarshalProto()
	found := &request{bytes: written}
	for at := range records {
		place := bytes.Index(written, binary.LittleEndian.AppendUint64(nil, uint64(marked(at))))
		found.times = append(found.times, place)
	}
	return found, err
}

type generator struct {
	connections []*grpc.ClientConn
	records     int
	// Of the first record, in nanoseconds since 1970.
	from    int64
	sent    atomic.Int64
	refused atomic.Int64
}

func load(address string, connections, records int, from int64) error {
	g := &generator{records: records, from: from}
	for range connections {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
		if err != nil {
			return err
		}
		g.connections = append(g.connections, connection)
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode("ready"); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var asked order
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		found, err := g.run(asked)
		if err != nil {
			return err
		}
		if err := out.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

// due says when the requests are to be sent, of which a worker takes the next each time; it is closed after the last.
func due(asked order, begun time.Time) <-chan time.Time {
	count := int(asked.Seconds * asked.RequestsPerSecond)
	times := make(chan time.Time, count)
	go func() {
		defer close(times)
		for at := range count {
			next := begun.Add(time.Duration(float64(at) / asked.RequestsPerSecond * float64(time.Second)))
			time.Sleep(time.Until(next))
			times <- next
		}
	}()
	return times
}

func (g *generator) run(asked order) (measured, error) {
	workers := len(g.connections)
	begun, cpu, refusedBefore := time.Now(), cpuSeconds(), g.refused.Load()
	next := func() (time.Time, bool) { return time.Now(), time.Since(begun).Seconds() < asked.Seconds }
	if asked.RequestsPerSecond > 0 {
		workers *= underWay
		times := due(asked, begun)
		next = func() (time.Time, bool) { at, more := <-times; return at, more }
	}
	took, failed, size := make([][]time.Duration, workers), make([]error, workers), 0
	var all sync.WaitGroup
	for worker := range workers {
		made, err := prepared(worker%kinds, g.records)
		if err != nil {
			return measured{}, err
		}
		size += len(made.bytes)
		connection := g.connections[worker%len(g.connections)]
		all.Go(func() { took[worker], failed[worker] = g.work(connection, made, next) })
	}
	all.Wait()
	seconds := time.Since(begun).Seconds()
	for _, err := range failed {
		if err != nil {
			return measured{}, err
		}
	}
	every := slices.Concat(took...)
	if len(every) == 0 {
		return measured{}, fmt.Errorf("nothing was sent in %g s", asked.Seconds)
	}
	slices.Sort(every)
	at := func(share float64) float64 {
		return float64(every[int(share*float64(len(every)-1))].Microseconds()) / 1000
	}
	return measured{
		Rows: int64(len(every) * g.records), Seconds: seconds, P50: at(0.5), P99: at(0.99), Max: at(1),
		CPUSeconds: cpuSeconds() - cpu, Refused: g.refused.Load() - refusedBefore, RequestBytes: size / workers,
	}, nil
}

// work sends one request after the other, and says how long each took from when it was due.
func (g *generator) work(connection *grpc.ClientConn, made *request, next func() (time.Time, bool)) ([]time.Duration, error) {
	var took []time.Duration
	for {
		at, more := next()
		if !more {
			return took, nil
		}
		made.number(g.from, g.sent.Add(int64(g.records))-int64(g.records))
		if err := g.send(connection, made.bytes); err != nil {
			return took, err
		}
		took = append(took, time.Since(at))
	}
}

// partly is the error of an answer by which not all was taken.
func partly(answer []byte) error {
	said := plogotlp.NewExportResponse()
	if err := said.UnmarshalProto(answer); err != nil {
		return err
	}
	if partial := said.PartialSuccess(); partial.RejectedLogRecords() > 0 {
		return fmt.Errorf("%d records were rejected: %s", partial.RejectedLogRecords(), partial.ErrorMessage())
	}
	return nil
}

// send returns when all is taken.
func (g *generator) send(connection *grpc.ClientConn, bytes []byte) error {
	for {
		var answer []byte
		err := connection.Invoke(context.Background(), export, bytes, &answer, grpc.WaitForReady(true))
		switch {
		case status.Code(err) == codes.Unavailable:
			g.refused.Add(1)
			time.Sleep(refused)
		case err == nil && len(answer) > 0:
			return partly(answer)
		default:
			return err
		}
	}
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

func marked(record int) pcommon.Timestamp { return pcommon.Timestamp(mark + uint64(record)) }
