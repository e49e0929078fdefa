package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/uuid"
)

// low is ch-go, which writes blocks of its own Go columns over one connection of the native protocol.
type low struct {
	ctx     context.Context
	conn    *ch.Client
	options ch.Options
}

func lowOptions() ch.Options {
	return ch.Options{
		Address:     os.Getenv("CLICKHOUSE_HOST") + ":" + os.Getenv("CLICKHOUSE_PORT"),
		Database:    os.Getenv("CLICKHOUSE_DATABASE"),
		User:        os.Getenv("CLICKHOUSE_USER"),
		Password:    os.Getenv("CLICKHOUSE_PASSWORD"),
		DialTimeout: 30 * time.Second,
		ReadTimeout: 60 * time.Second,
	}
}

func dial(ctx context.Context, options ch.Options) *low {
	conn, err := ch.Dial(ctx, options)
	if err != nil {
		panic(err)
	}
	return &low{ctx: ctx, conn: conn, options: options}
}

// again connects anew after ch-go has closed the connection, as it does where something failed within a statement.
func (l *low) again() {
	if l.conn.IsClosed() {
		l.conn = dial(l.ctx, l.options).conn
	}
}

func (l *low) do(query ch.Query) error {
	l.again()
	return l.conn.Do(l.ctx, query)
}

func (l *low) exec(text string) error { return l.do(ch.Query{Body: text}) }

// text reads the one text that a statement answers.
func (l *low) text(query string) (string, error) {
	var column proto.ColStr
	var read []string
	err := l.do(ch.Query{Body: query, Result: proto.Results{{Data: &column}}, OnResult: func(context.Context, proto.Block) error {
		read = append(read, slices.Collect(texts(&column))...)
		return nil
	}})
	if err != nil || len(read) != 1 {
		return "", errors.Join(err, fmt.Errorf("%d rows", len(read)))
	}
	return read[0], nil
}

func texts(column *proto.ColStr) func(func(string) bool) {
	return func(yield func(string) bool) {
		for n := range column.Rows() {
			if !yield(column.Row(n)) {
				return
			}
		}
	}
}

// smallInput has the columns of the table that every way fills, in the types that Go has for them.
type smallInput struct {
	id    proto.ColUInt64
	s     proto.ColStr
	maybe *proto.ColNullable[int32]
	kind  *proto.ColLowCardinality[string]
	at    *proto.ColDateTime64
	tags  *proto.ColArr[string]
	notes *proto.ColMap[string, string]
}

func newSmallInput() *smallInput {
	return &smallInput{
		maybe: new(proto.ColInt32).Nullable(), kind: new(proto.ColStr).LowCardinality(),
		at: new(proto.ColDateTime64).WithPrecision(proto.PrecisionMilli).WithLocation(time.UTC), tags: new(proto.ColStr).Array(),
		notes: proto.NewMap[string, string](new(proto.ColStr).LowCardinality(), new(proto.ColStr)),
	}
}

func (i *smallInput) append(row small) {
	i.id.Append(row.ID)
	i.s.Append(row.S)
	maybe := proto.Null[int32]()
	if row.Maybe != nil {
		maybe = proto.NewNullable(*row.Maybe)
	}
	i.maybe.Append(maybe)
	i.kind.Append(row.Kind)
	i.at.Append(row.At)
	i.tags.Append(row.Tags)
	i.notes.Append(row.Notes)
}

func (i *smallInput) input() proto.Input {
	return proto.Input{
		{Name: "id", Data: &i.id}, {Name: "s", Data: &i.s}, {Name: "maybe", Data: i.maybe}, {Name: "kind", Data: i.kind},
		{Name: "at", Data: i.at}, {Name: "tags", Data: i.tags}, {Name: "notes", Data: i.notes},
	}
}

// filled has all rows, some or none of them.
func filled(from, to int) *smallInput {
	input := newSmallInput()
	for n := from; n < to; n++ {
		input.append(smallRow(n))
	}
	return input
}

// inserted is an INSERT of all rows in one block.
func inserted(table string) ch.Query {
	input := filled(0, smallRows).input()
	return ch.Query{Body: input.Into(table), Input: input}
}

// streamedBlocks is an INSERT of blocks of so many rows.
func streamedBlocks(table string, rows int) ch.Query {
	block := newSmallInput()
	next := 0
	input := block.input()
	return ch.Query{Body: input.Into(table), Input: input, OnInput: func(context.Context) error {
		input.Reset()
		if next >= smallRows {
			return io.EOF
		}
		for end := min(next+rows, smallRows); next < end; next++ {
			block.append(smallRow(next))
		}
		return nil
	}}
}

const asText = "SELECT toString(groupArray(row)) FROM (SELECT tuple(*) AS row FROM %s ORDER BY id)"

// storedRows compares what landed with what ClickHouse makes of the same rows as clickhouse-go's statements have them.
func (l *low) storedRows(table string) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		got, err := l.text(fmt.Sprintf(asText, table))
		if err != nil {
			return err
		}
		expected, err := l.text(expectedRows())
		if err != nil || got == expected {
			return err
		}
		if time.Now().After(deadline) {
			return equal(got, expected)
		}
	}
}

// expectedRows is a statement that gives the rows of [smallRow] without inserting anything.
func expectedRows() string {
	return `SELECT toString(groupArray(row)) FROM (SELECT tuple(id, concat('text ', toString(id), ' ‘quoted’ \\ \t ", it\'s\n'),
		if(id % 2 = 0, toInt32(100 - id), NULL)::Nullable(Int32), concat('kind ', toString(id % 3))::LowCardinality(String),
		toDateTime64('2024-02-29 12:34:56.789', 3, 'UTC'), arrayMap(n -> concat('tag ', toString(n)), range(id % 4)),
		map('n', toString(id))::Map(LowCardinality(String), String)) AS row FROM (SELECT number AS id FROM numbers(10)) ORDER BY id)`
}

// way inserts into a table of its own, and looks at what landed.
func (l *low) way(table string, inserts int, insert func(table string) error) {
	sent[table] += inserts
	run("insert "+table, func() error {
		if err := l.exec("CREATE TABLE " + table + " " + smallColumns + " ENGINE = MergeTree ORDER BY id"); err != nil {
			return err
		}
		if err := insert(table); err != nil {
			return err
		}
		return l.storedRows(table)
	})
}

func setting(key, value string) ch.Setting {
	return ch.Setting{Key: key, Value: value, Important: true}
}

var (
	lowWaiting    = []ch.Setting{setting("async_insert", "1"), setting("wait_for_async_insert", "1")}
	lowNotWaiting = []ch.Setting{setting("async_insert", "1"), setting("wait_for_async_insert", "0")}
	lowPinnedOff  = []ch.Setting{setting("async_insert", "0")}
)

func with(query ch.Query, settings []ch.Setting) ch.Query {
	query.Settings = settings
	return query
}

// lowChecks runs every way to insert that ch-go has, its types, its errors, and what else it does.
func lowChecks(ctx context.Context) {
	l := dial(ctx, lowOptions())
	defer func() { _ = l.conn.Close() }()
	l.ways()
	l.compressions()
	l.many()
	l.converted()
	l.types()
	l.refusals()
	l.reads()
}

func (l *low) ways() {
	l.way("block", 1, func(table string) error { return l.do(inserted(table)) })
	l.way("block_waiting", 1, func(table string) error { return l.do(with(inserted(table), lowWaiting)) })
	l.way("block_not_waiting", 1, func(table string) error { return l.do(with(inserted(table), lowNotWaiting)) })
	l.way("block_pinned_off", 1, func(table string) error { return l.do(with(inserted(table), lowPinnedOff)) })
	for _, rows := range []int{1, 3, 10} {
		l.way(fmt.Sprintf("stream_%d", rows), 1, func(table string) error { return l.do(streamedBlocks(table, rows)) })
	}
	l.way("stream_waiting", 1, func(table string) error { return l.do(with(streamedBlocks(table, 3), lowWaiting)) })
	l.way("stream_not_waiting", 1, func(table string) error { return l.do(with(streamedBlocks(table, 3), lowNotWaiting)) })
	l.way("stream_pinned_off", 1, func(table string) error { return l.do(with(streamedBlocks(table, 3), lowPinnedOff)) })
	l.way("stream_with_tail", 1, l.withTail)
	l.way("stream_with_holes", 1, l.withHoles)
	l.way("named", 1, func(table string) error {
		query := inserted(table)
		query.QueryID = uuid.NewString()
		return l.do(query)
	})
	l.way("observed", 1, l.observed)
	l.way("logged", 1, func(table string) error {
		logs := 0
		query := with(streamedBlocks(table, 3), []ch.Setting{setting("send_logs_level", "trace"), setting("async_insert", "0")})
		query.OnLogs = func(_ context.Context, lines []ch.Log) error { logs += len(lines); return nil }
		if err := l.do(query); err != nil || logs > 0 {
			return err
		}
		return errors.New("no logs came")
	})
	l.way("turned", 1, func(table string) error {
		query := inserted(table)
		slices.Reverse(query.Input)
		query.Body = query.Input.Into(table)
		return l.do(query)
	})
	// The statement names other columns first; the block has them by name.
	l.way("by_name", 1, func(table string) error {
		query := inserted(table)
		slices.Reverse(query.Input)
		query.Body = "INSERT INTO " + table + " (id, s, maybe, kind, at, tags, notes) VALUES"
		return l.do(query)
	})
	l.way("nothing_named", 1, func(table string) error {
		query := inserted(table)
		query.Body = "INSERT INTO " + table + " FORMAT Native"
		return l.do(query)
	})
	l.way("superfluous", 1, func(table string) error {
		query := inserted(table)
		query.Body = "INSERT INTO " + table + " (id, s, maybe, kind, at, tags, notes) VALUES"
		extra := make(proto.ColUInt8, smallRows)
		query.Input = append(query.Input, proto.InputColumn{Name: "nobody", Data: &extra})
		return l.do(query)
	})
	l.way("select", 1, func(table string) error { return l.exec("INSERT INTO " + table + " SELECT * FROM block") })
	l.way("settings_of_client", 1, func(table string) error {
		options := lowOptions()
		options.Settings, options.QuotaKey = lowWaiting, "a key"
		return l.apart(options, streamedBlocks(table, 3))
	})
	l.way("old_revision", 1, func(table string) error {
		options := lowOptions()
		options.ProtocolVersion = 54451
		return l.apart(options, streamedBlocks(table, 3))
	})
	l.way("after_set", 1, func(table string) error {
		own := dial(l.ctx, lowOptions())
		defer own.conn.Close()
		return errors.Join(own.exec("SET max_insert_threads = 1"), own.do(streamedBlocks(table, 3)))
	})
}

// withTail hands over the last rows together with the end.
func (l *low) withTail(table string) error {
	block := filled(0, 4)
	input := block.input()
	return l.do(ch.Query{Body: input.Into(table), Input: input, OnInput: func(context.Context) error {
		input.Reset()
		for n := 4; n < smallRows; n++ {
			block.append(smallRow(n))
		}
		return io.EOF
	}})
}

// withHoles has blocks with columns and no rows among the others: they are not the end.
func (l *low) withHoles(table string) error {
	block := filled(0, 4)
	input := block.input()
	step := 0
	return l.do(ch.Query{Body: input.Into(table), Input: input, OnInput: func(context.Context) error {
		input.Reset()
		step++
		switch step {
		case 1, 2, 4:
			return nil
		case 3:
			for n := 4; n < smallRows; n++ {
				block.append(smallRow(n))
			}
			return nil
		}
		return io.EOF
	}})
}

// observed looks at what a client is told meanwhile.
func (l *low) observed(table string) error {
	events := map[string]int64{}
	query := streamedBlocks(table, 3)
	query.OnProfileEvents = func(_ context.Context, all []ch.ProfileEvent) error {
		for _, event := range all {
			events[event.Name] += event.Value
		}
		return nil
	}
	if err := l.do(query); err != nil {
		return err
	}
	return equal(events["InsertedRows"], int64(smallRows))
}

func (l *low) compressions() {
	for name, compression := range map[string]ch.Compression{
		"none": ch.CompressionNone, "lz4": ch.CompressionLZ4, "lz4hc": ch.CompressionLZ4HC, "zstd": ch.CompressionZSTD,
		"disabled": ch.CompressionDisabled,
	} {
		for rows, kind := range map[int]string{smallRows: "", 3: "_stream"} {
			l.way("packed_"+name+kind, 1, func(table string) error {
				options := lowOptions()
				options.Compression = compression
				own := dial(l.ctx, options)
				defer own.conn.Close()
				if err := own.do(streamedBlocks(table, rows)); err != nil {
					return err
				}
				return own.storedRows(table)
			})
		}
	}
}

const manyRows, manyAtOnce = 300_000, 50_000

func (l *low) many() {
	l.way("one_by_one", smallRows, func(table string) error {
		for n := range smallRows {
			input := filled(n, n+1).input()
			if err := l.do(ch.Query{Body: input.Into(table), Input: input, Settings: lowWaiting}); err != nil {
				return err
			}
		}
		return nil
	})
	l.way("at_once", smallRows, func(table string) error {
		var group sync.WaitGroup
		failed := make([]error, smallRows)
		for n := range smallRows {
			group.Go(func() {
				own := dial(l.ctx, lowOptions())
				defer own.conn.Close()
				input := filled(n, n+1).input()
				failed[n] = own.do(ch.Query{Body: input.Into(table), Input: input, Settings: lowWaiting})
			})
		}
		group.Wait()
		return errors.Join(failed...)
	})
	l.large("many", "id UInt64", 0)
	l.large("many_large", "id UInt64, s String", 60)
}

// large streams blocks without looking whether anybody reads them.
func (l *low) large(table, columns string, width int) {
	sent[table]++
	run("insert "+table, func() error {
		if err := l.exec("CREATE TABLE " + table + " (" + columns + ") ENGINE = MergeTree ORDER BY id"); err != nil {
			return err
		}
		var id proto.ColUInt64
		var s proto.ColStr
		input := proto.Input{{Name: "id", Data: &id}}
		if width > 0 {
			input = append(input, proto.InputColumn{Name: "s", Data: &s})
		}
		next := 0
		err := l.do(ch.Query{Body: input.Into(table), Input: input, OnInput: func(context.Context) error {
			input.Reset()
			if next >= manyRows {
				return io.EOF
			}
			for end := next + manyAtOnce; next < end; next++ {
				id.Append(uint64(next))
				s.Append(strings.Repeat("x", width))
			}
			return nil
		}})
		if err != nil {
			return err
		}
		got, err := l.text("SELECT toString((count(), uniqExact(id), max(id))) FROM " + table)
		return errors.Join(err, equal(got, fmt.Sprintf("(%d,%d,%d)", manyRows, manyRows, manyRows-1)))
	})
}

// stubborn keeps its type, whatever the table has.
type stubborn struct{ proto.ColInput }

// converted sends columns of other types than the table has, which ClickHouse casts, and leaves some out.
func (l *low) converted() {
	as := func(table, kind string, column proto.ColInput, landed string) {
		sent[table]++
		run("insert "+table, func() error {
			create := "CREATE TABLE " + table + " (v " + kind + ", left UInt8 DEFAULT 7) ENGINE = MergeTree ORDER BY tuple()"
			if err := l.exec(create); err != nil {
				return err
			}
			input := proto.Input{{Name: "v", Data: column}}
			if err := l.do(ch.Query{Body: input.Into(table), Input: input}); err != nil {
				return err
			}
			got, err := l.text("SELECT toString(groupArray((v, left))) FROM " + table)
			return errors.Join(err, equal(got, landed))
		})
	}
	words := func(all ...string) *proto.ColStr {
		column := new(proto.ColStr)
		column.AppendArr(all)
		return column
	}
	as("text_as_words", "LowCardinality(String)", words("a", "b", "a"), "[('a',7),('b',7),('a',7)]")
	few := new(proto.ColStr).LowCardinality()
	few.AppendArr([]string{"a", "b", "a"})
	as("words_as_text", "String", few, "[('a',7),('b',7),('a',7)]")
	as("text_as_number", "Int32", words("1", "-2"), "[(1,7),(-2,7)]")
	as("text_as_date", "Date", words("2024-02-29"), "[('2024-02-29',7)]")
	as("text_as_enum", "Enum8('a' = 1, 'b' = 2)", words("b", "a"), "[('b',7),('a',7)]")
	as("text_as_nullable", "Nullable(String)", words("a", ""), "[('a',7),('',7)]")
	as("wide_as_narrow", "UInt8", &proto.ColUInt64{1, 2, 255}, "[(1,7),(2,7),(255,7)]")
	as("too_wide_as_narrow", "UInt8", &proto.ColUInt64{256, 513}, "[(0,7),(1,7)]")
	as("narrow_as_wide", "Int64", &proto.ColInt8{-1, 5}, "[(-1,7),(5,7)]")
	as("signed_as_unsigned", "UInt16", &proto.ColInt16{-1, 5}, "[(65535,7),(5,7)]")
	as("number_as_text", "String", &proto.ColInt32{-1, 5}, "[('-1',7),('5',7)]")
	as("number_as_decimal", "Decimal(9, 2)", &proto.ColInt32{-1, 5}, "[(-1,7),(5,7)]")
	as("number_as_float", "Float64", &proto.ColInt32{-1, 5}, "[(-1,7),(5,7)]")
	as("float_as_number", "Int32", &proto.ColFloat64{-1.7, 5.2}, "[(-1,7),(5,7)]")
	as("number_as_bool", "Bool", &proto.ColUInt8{0, 1}, "[(false,7),(true,7)]")
	nullable := new(proto.ColInt32).Nullable()
	nullable.AppendArr([]proto.Nullable[int32]{proto.NewNullable[int32](1), proto.Null[int32]()})
	as("nullable_as_plain", "Int32", nullable, "[(1,7),(0,7)]")
	milli := new(proto.ColDateTime64).WithPrecision(proto.PrecisionMilli).WithLocation(time.UTC)
	milli.Append(time.Date(2024, 2, 29, 12, 34, 56, 789e6, time.UTC))
	as("milli_as_nano", "DateTime64(9, 'UTC')", stubborn{milli}, "[('2024-02-29 12:34:56.789000000',7)]")
	as("milli_as_seconds", "DateTime('UTC')", stubborn{milli}, "[('2024-02-29 12:34:56',7)]")
	sent["left_out"]++
	run("insert left_out", func() error {
		create := "CREATE TABLE left_out (id UInt64, s String DEFAULT 'computed') ENGINE = MergeTree ORDER BY id"
		if err := l.exec(create); err != nil {
			return err
		}
		// The statement names a column that the block has not: it gets the default of its type, not its own.
		input := proto.Input{{Name: "id", Data: &proto.ColUInt64{1, 2}}}
		if err := l.do(ch.Query{Body: "INSERT INTO left_out (id, s) VALUES", Input: input}); err != nil {
			return err
		}
		got, err := l.text("SELECT toString(groupArray((id, s))) FROM left_out")
		return errors.Join(err, equal(got, "[(1,''),(2,'')]"))
	})
}

// types inserts into one table what ch-go has read from another.
func (l *low) types() {
	for _, kind := range kinds {
		if lowUnknown[kind.table] {
			continue
		}
		table := "type_" + kind.table
		sent[table]++
		run("insert "+kind.name, func() error { return l.copied(kind, table) })
	}
}

// lowUnknown are the types for which ch-go finds no column by itself.
// Of a Decimal's type it names no scale, which ClickHouse refuses.
var lowUnknown = map[string]bool{
	"bfloat16": true, "fixed_string": true, "time": true, "time64": true, "decimal32": true, "decimal128": true, "decimal256": true,
	"words_or_null": true, "array": true, "map": true, "map_of_words": true, "map_of_maps": true, "tuple": true, "named_tuple": true,
	"array_of_tuples": true, "point": true, "polygon": true, "simple_aggregate": true, "variant": true, "dynamic": true, "json": true,
}

func (l *low) copied(kind kind, table string) error {
	rows := make([]string, len(kind.values))
	for n, value := range kind.values {
		rows[n] = fmt.Sprintf("SELECT toUInt64(%d) AS id, CAST(%s AS %s) AS v", n, value, kind.name)
	}
	columns := " (id UInt64, v " + kind.name + ") ENGINE = MergeTree ORDER BY id"
	if err := l.exec("CREATE TABLE from_" + table + columns + " AS " + strings.Join(rows, " UNION ALL ")); err != nil {
		return err
	}
	if err := l.exec("CREATE TABLE " + table + columns); err != nil {
		return err
	}
	var read proto.Results
	query := ch.Query{Body: "SELECT * FROM from_" + table + " ORDER BY id", Result: read.Auto()}
	query.OnResult = func(_ context.Context, block proto.Block) error { return nil }
	if err := l.do(query); err != nil {
		return err
	}
	input := make(proto.Input, len(read))
	for n, column := range read {
		input[n] = proto.InputColumn{Name: column.Name, Data: column.Data.(proto.ColInput)}
	}
	if err := l.do(ch.Query{Body: input.Into(table), Input: input}); err != nil {
		return err
	}
	got, err := l.text(fmt.Sprintf(asText, table))
	if err != nil {
		return err
	}
	expected, err := l.text(fmt.Sprintf(asText, "from_"+table))
	return errors.Join(err, equal(got, expected))
}
