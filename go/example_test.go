package windrow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	windrow "windrow.dev/go"
)

// printing is a store that prints what it is to store, in the place of a ClickHouse.
type printing struct{}

func (printing) Describe(_ context.Context, table string, columns []string) (windrow.Table, error) {
	described := []windrow.Column{{Name: "id", Type: "UInt64"}, {Name: "what", Type: "String"}}
	destination, err := windrow.Choose(table, described, columns)
	return windrow.Table{Destination: destination, Deduplicates: true}, err
}

func (printing) Insert(_ context.Context, batch windrow.Batch) error {
	if batch.Rows.Count() == 1 {
		return &windrow.Exception{Code: 469, Text: "Constraint `c` is violated at row 1."}
	}
	fmt.Println("rows:", batch.Rows.Count())
	return nil
}

type Event struct {
	ID   uint64 `ch:"id"`
	What string `ch:"what"`
}

// A program has windrow.HTTP("http://user:password@localhost:8123/default") in the place of printing{}.
func Example() {
	ctx := context.Background()
	writer, err := windrow.Open[Event](ctx, printing{}, "events", windrow.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for id := range uint64(3) {
		if err := writer.Write(Event{ID: id, What: "seen"}); err != nil {
			log.Fatal(err)
		}
	}
	if err := writer.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: rows: 3
}

// Rows may be lists of values, in the order of the columns.
func ExampleRow() {
	ctx := context.Background()
	writer, err := windrow.Open[windrow.Row](ctx, printing{}, "events", windrow.Options{Columns: []string{"what", "id"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := writer.WriteRows([]windrow.Row{{"started", 1}, {"ended", 2}}); err != nil {
		log.Fatal(err)
	}
	var wrong *windrow.ValueError
	if err := writer.Write(windrow.Row{"seen", -1}); errors.As(err, &wrong) {
		fmt.Println(wrong)
	}
	if err := writer.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// windrow: column id: the value is out of the type's range
	// rows: 2
}

// When there is no room, Write says so at once; WriteBlocking waits, for as long as the context allows.
func ExampleWriter_WriteBlocking() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	writer, err := windrow.Open[Event](ctx, printing{}, "events", windrow.Options{})
	if err != nil {
		log.Fatal(err)
	}
	row := Event{ID: 1, What: "started"}
	if err := writer.Write(row); errors.Is(err, windrow.ErrFull) {
		err = writer.WriteBlocking(ctx, row)
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := writer.WriteBlocking(ctx, Event{ID: 2, What: "seen"}, Event{ID: 3, What: "ended"}); err != nil {
		log.Fatal(err)
	}
	if err := writer.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: rows: 3
}

// Rows that can't be stored come back. Nobody has to read them: the writer never waits for it.
func ExampleWriter_Errors() {
	ctx := context.Background()
	writer, err := windrow.Open[Event](ctx, printing{}, "events", windrow.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := writer.Write(Event{ID: 1, What: "alone"}); err != nil {
		log.Fatal(err)
	}
	if err := writer.Close(ctx); err != nil {
		log.Fatal(err)
	}
	for failed := range writer.Errors() {
		var exception *windrow.Exception
		if errors.As(failed, &exception) {
			fmt.Println(failed.RowCount, failed.Reason, exception.Code)
		}
	}
	// Output: 1 values 469
}
