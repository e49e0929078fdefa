package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ClickHouse/ch-go"
	"github.com/ClickHouse/ch-go/proto"
)

// failsLow expects ClickHouse's code in ch-go's error.
func failsLow(err error, code proto.Error) error {
	exception, is := ch.AsException(err)
	if !is {
		return fmt.Errorf("no ClickHouse exception but %T: %w", err, err)
	}
	return equal(exception.Code, code)
}

// apart runs a statement by a connection of its own: now and then ClickHouse closes the one on which it has refused an insert.
func (l *low) apart(options ch.Options, query ch.Query) error {
	own := dial(l.ctx, options)
	defer own.conn.Close()
	return own.do(query)
}

func (l *low) refusals() {
	apart := func(query ch.Query) error { return l.apart(lowOptions(), query) }
	refused := func(table string, code proto.Error, insert func(table string) error) {
		sent[table]++
		run(fmt.Sprintf("%s is %d", table, code), func() error {
			if err := l.exec("CREATE TABLE " + table + " " + smallColumns + " ENGINE = MergeTree ORDER BY id"); err != nil {
				return err
			}
			if err := l.exec("ALTER TABLE " + table + " ADD CONSTRAINT few CHECK id < 5"); err != nil {
				return err
			}
			if err := failsLow(insert(table), code); err != nil {
				return err
			}
			got, err := l.text("SELECT toString(count()) FROM " + table)
			return errors.Join(err, equal(got, "0"))
		})
	}
	refused("constraint", 469, func(table string) error { return apart(inserted(table)) })
	refused("constraint_stream", 469, func(table string) error { return apart(streamedBlocks(table, 3)) })
	refused("constraint_waiting", 469, func(table string) error { return apart(with(streamedBlocks(table, 3), lowWaiting)) })
	refused("constraint_off", 469, func(table string) error { return apart(with(streamedBlocks(table, 3), lowPinnedOff)) })
	refused("constraint_packed", 469, func(table string) error {
		options := lowOptions()
		options.Compression = ch.CompressionZSTD
		return l.apart(options, streamedBlocks(table, 3))
	})
	refused("unknown_column", 16, func(table string) error {
		query := inserted(table)
		query.Body = "INSERT INTO " + table + " (id, nobody) VALUES"
		return apart(query)
	})
	refused("unknown_setting", 115, func(table string) error {
		return apart(with(inserted(table), []ch.Setting{setting("no_such_setting", "1")}))
	})
	refused("not_cast", 6, func(table string) error {
		column := new(proto.ColStr)
		column.AppendArr([]string{"1", "x"})
		return apart(ch.Query{Body: "INSERT INTO " + table + " (id) VALUES", Input: proto.Input{{Name: "id", Data: column}}})
	})
	refused("superfluous_not_skipped", 117, func(table string) error {
		query := with(inserted(table), []ch.Setting{setting("input_format_skip_unknown_fields", "0")})
		query.Input = append(query.Input, proto.InputColumn{Name: "nobody", Data: &proto.ColUInt8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}})
		query.Body = "INSERT INTO " + table + " (id, s, maybe, kind, at, tags, notes) VALUES"
		return apart(query)
	})
	sent["nowhere"]++
	run("unknown table is 60", func() error { return failsLow(apart(inserted("nowhere")), 60) })
	run("given up within", l.givenUp)
	run("cut off within", l.cutOff)
}

// givenUp fails in its second block: ch-go cancels the insert and closes the connection.
func (l *low) givenUp() error {
	if err := l.exec("CREATE TABLE given_up (id UInt64) ENGINE = MergeTree ORDER BY id"); err != nil {
		return err
	}
	own := dial(l.ctx, lowOptions())
	step := 0
	input := proto.Input{{Name: "id", Data: &proto.ColUInt64{1, 2}}}
	err := own.do(ch.Query{Body: input.Into("given_up"), Input: input, OnInput: func(context.Context) error {
		if step++; step > 3 {
			return errors.New("changed my mind")
		}
		return nil
	}})
	if err == nil {
		return errors.New("no error was returned")
	}
	return l.restIsNothing("given_up")
}

// cutOff closes the connection between two blocks, without a word.
func (l *low) cutOff() error {
	if err := l.exec("CREATE TABLE cut_off (id UInt64) ENGINE = MergeTree ORDER BY id"); err != nil {
		return err
	}
	own := dial(l.ctx, lowOptions())
	input := proto.Input{{Name: "id", Data: &proto.ColUInt64{1, 2}}}
	err := own.do(ch.Query{Body: input.Into("cut_off"), Input: input, OnInput: func(context.Context) error {
		_ = own.conn.Close()
		return io.EOF
	}})
	if err == nil {
		return errors.New("no error was returned")
	}
	return l.restIsNothing("cut_off")
}

// restIsNothing looks behind an insert that is known to be through.
func (l *low) restIsNothing(table string) error {
	sent[table+"_behind"]++
	if err := l.exec("CREATE TABLE " + table + "_behind (id UInt64) ENGINE = MergeTree ORDER BY id"); err != nil {
		return err
	}
	input := proto.Input{{Name: "id", Data: &proto.ColUInt64{1}}}
	if err := l.do(ch.Query{Body: input.Into(table + "_behind"), Input: input, Settings: lowWaiting}); err != nil {
		return err
	}
	got, err := l.text("SELECT toString(count()) FROM " + table)
	return errors.Join(err, equal(got, "0"))
}

func (l *low) reads() {
	run("ping", func() error { return errors.Join(l.conn.Ping(l.ctx), l.conn.Ping(l.ctx)) })
	run("server info", func() error {
		version, err := l.text("SELECT version()")
		info := l.conn.ServerInfo()
		got := fmt.Sprintf("%d.%d.%d", info.Major, info.Minor, info.Patch)
		if err != nil || len(version) < len(got) {
			return errors.Join(err, fmt.Errorf("%s, not %s", version, got))
		}
		return equal(got, version[:len(got)])
	})
	run("many blocks", func() error {
		var column proto.ColUInt64
		var sum uint64
		blocks := 0
		query := ch.Query{Body: "SELECT number FROM numbers(1000000)", Result: proto.Results{{Name: "number", Data: &column}}}
		query.OnResult = func(context.Context, proto.Block) error {
			for _, number := range column {
				sum += number
			}
			blocks++
			return nil
		}
		if err := l.do(query); err != nil || blocks < 3 {
			return errors.Join(err, fmt.Errorf("%d blocks", blocks))
		}
		return equal(sum, uint64(1_000_000*999_999/2))
	})
	run("progress and profile", func() error {
		var column proto.ColUInt64
		var rows, profiled uint64
		err := l.do(ch.Query{
			Body: "SELECT sum(number) AS n FROM numbers(1000000)", Result: proto.Results{{Name: "n", Data: &column}},
			OnResult:   func(context.Context, proto.Block) error { return nil },
			OnProgress: func(_ context.Context, p proto.Progress) error { rows += p.Rows; return nil },
			OnProfile:  func(_ context.Context, p proto.Profile) error { profiled += p.Rows; return nil },
		})
		return errors.Join(err, equal([]uint64{rows, profiled}, []uint64{1_000_000, 1}))
	})
	run("outside table", func() error {
		var column proto.ColUInt64
		var got []uint64
		err := l.do(ch.Query{
			Body: "SELECT sum(v) AS n FROM beside", ExternalTable: "beside", Result: proto.Results{{Name: "n", Data: &column}},
			ExternalData: proto.Input{{Name: "v", Data: &proto.ColUInt64{1, 2, 39}}},
			OnResult: func(context.Context, proto.Block) error {
				got = append(got, column...)
				return nil
			},
		})
		return errors.Join(err, equal(got, []uint64{42}))
	})
	run("parameters", func() error {
		var column proto.ColStr
		var got string
		err := l.do(ch.Query{
			Body: "SELECT concat({s:String}, toString({n:UInt8})) AS s", Result: proto.Results{{Name: "s", Data: &column}},
			Parameters: ch.Parameters(map[string]any{"s": "it is ", "n": 7}),
			OnResult: func(context.Context, proto.Block) error {
				if column.Rows() > 0 {
					got = column.Row(0)
				}
				return nil
			},
		})
		return errors.Join(err, equal(got, "it is 7"))
	})
	run("temporary table", func() error {
		own := dial(l.ctx, lowOptions())
		defer own.conn.Close()
		if err := own.exec("CREATE TEMPORARY TABLE scratch " + smallColumns); err != nil {
			return err
		}
		sent["scratch"]++
		if err := own.do(streamedBlocks("scratch", 3)); err != nil {
			return err
		}
		return own.storedRows("scratch")
	})
	run("unknown table in a question is 60", func() error { return failsLow(l.exec("SELECT * FROM nowhere"), 60) })
	run("syntax error is 62", func() error { return failsLow(l.exec("SELEC 1"), 62) })
	run("goes on behind an error", func() error {
		for range 3 {
			if err := failsLow(l.conn.Do(l.ctx, ch.Query{Body: "SELECT * FROM nowhere"}), 60); err != nil {
				return err
			}
			if err := l.conn.Ping(l.ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
