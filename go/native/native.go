// Package native sends a writer's batches over ClickHouse's native protocol, by ch-go.
//
//	store := native.New(ch.Options{Address: "localhost:9000"})
//	defer store.Close()
//	writer, err := windrow.Open[Event](ctx, store, "events", windrow.Options{})
//
// A writer keeps rows one after the other; the protocol wants them in columns. They are put into columns
// without being decoded: a value has the same bytes in both.
package native

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"

	windrow "windrow.dev/go"
)

// maxIdle is how many connections wait for the next batch.
const maxIdle = 16

// Store sends batches over connections of its own.
type Store struct {
	options ch.Options

	mu     sync.Mutex
	idle   []*ch.Client
	closed bool
}

// New gives a store. It connects when there is something to be sent.
func New(options ch.Options) *Store { return &Store{options: options} }

// Close closes the connections that nobody uses; others when their batch has come to its end.
func (s *Store) Close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, client := range idle {
		_ = client.Close()
	}
}

func (s *Store) take(ctx context.Context) (*ch.Client, error) {
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		client := s.idle[last]
		s.idle = s.idle[:last]
		s.mu.Unlock()
		return client, nil
	}
	s.mu.Unlock()
	return ch.Dial(ctx, s.options)
}

func (s *Store) giveBack(client *ch.Client) {
	s.mu.Lock()
	isKept := !s.closed && len(s.idle) < maxIdle && !client.IsClosed()
	if isKept {
		s.idle = append(s.idle, client)
	}
	s.mu.Unlock()
	if !isKept {
		_ = client.Close()
	}
}

// do runs a query. A connection on which something failed is not used again: what it would say next isn't
// known.
func (s *Store) do(ctx context.Context, query ch.Query) error {
	client, err := s.take(ctx)
	if err != nil {
		return exceptionIn(err)
	}
	if err := client.Do(ctx, query); err != nil {
		_ = client.Close()
		return exceptionIn(err)
	}
	s.giveBack(client)
	return nil
}

// exceptionIn gives ClickHouse's error as writers know it.
func exceptionIn(err error) error {
	var exception *ch.Exception
	if errors.As(err, &exception) {
		return &windrow.Exception{Code: int(exception.Code), Text: exception.Message}
	}
	return err
}

// Describe asks for the table's columns, and for its window of deduplication.
func (s *Store) Describe(ctx context.Context, table string, columns []string) (windrow.Table, error) {
	database, name := windrow.SplitTable(table)
	parameters := ch.Parameters(map[string]any{"d": database, "t": name})
	var fields [4]proto.ColStr
	var described []windrow.Column
	err := s.do(ctx, ch.Query{
		Body: windrow.ColumnsQuery, Parameters: parameters,
		Result: proto.Results{
			{Name: "database", Data: &fields[0]}, {Name: "name", Data: &fields[1]}, {Name: "type", Data: &fields[2]},
			{Name: "default_kind", Data: &fields[3]},
		},
		OnResult: func(_ context.Context, block proto.Block) error {
			for row := range block.Rows {
				text := func(field int) string { return strings.Clone(fields[field].Row(row)) }
				described = append(described, windrow.Column{Database: text(0), Name: text(1), Type: text(2), DefaultKind: text(3)})
			}
			return nil
		},
	})
	if err != nil {
		return windrow.Table{}, err
	}
	destination, err := windrow.Choose(table, described, columns)
	if err != nil {
		return windrow.Table{}, err
	}
	return windrow.Table{Destination: destination, Deduplicates: s.deduplicates(ctx, parameters)}, nil
}

// deduplicates says yes where the answer can't be had: nothing is said then.
func (s *Store) deduplicates(ctx context.Context, parameters []proto.Parameter) bool {
	var answer proto.ColUInt8
	deduplicates := true
	err := s.do(ctx, ch.Query{
		Body: windrow.WindowQuery, Parameters: parameters,
		Result: proto.ResultColumn{Data: &answer},
		OnResult: func(_ context.Context, block proto.Block) error {
			for row := range block.Rows {
				deduplicates = answer.Row(row) != 0
			}
			return nil
		},
	})
	return err != nil || deduplicates
}

// Insert sends the batch as one block.
func (s *Store) Insert(ctx context.Context, batch windrow.Batch) error {
	columns, err := columnsOf(batch.Destination, batch.Rows)
	if err != nil {
		return err
	}
	query := ch.Query{Body: "INSERT INTO " + batch.Destination.QuotedTable() + batch.Destination.QuotedColumns() + " VALUES"}
	for name, value := range batch.InsertSettings() {
		query.Settings = append(query.Settings, ch.Setting{Key: name, Value: value, Important: true})
	}
	for index, name := range batch.Destination.Columns {
		query.Input = append(query.Input, proto.InputColumn{Name: name, Data: columns[index]})
	}
	return s.do(ctx, query)
}
