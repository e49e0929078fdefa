package redisbuffer_test

import (
	"context"
	"log"

	windrow "windrow.dev/go"
	"windrow.dev/go/redisbuffer"
)

type Event struct {
	ID   uint64 `ch:"id"`
	What string `ch:"what"`
}

// Writers of many processes that name one bucket look after each other's rows.
func ExampleAt() {
	ctx := context.Background()
	store, err := windrow.HTTP("http://default@localhost:8123/default")
	if err != nil {
		log.Fatal(err)
	}
	buffer := redisbuffer.At("redis://localhost:6379/0?bucket=events")
	writer, err := windrow.Open[Event](ctx, store, "events", windrow.Options{Buffer: buffer})
	if err != nil {
		log.Fatal(err)
	}
	// It returns when Redis has confirmed the row.
	if err := writer.WriteBlocking(ctx, Event{ID: 1, What: "started"}); err != nil {
		log.Fatal(err)
	}
	if err := writer.Close(ctx); err != nil {
		log.Fatal(err)
	}
}
