package diskbuffer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	windrow "windrow.dev/go"
	"windrow.dev/go/diskbuffer"
)

// Rows that a killed program has written are stored by the next one that opens the folder.
func Example() {
	temporary, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(temporary)
	ctx := context.Background()
	folder := filepath.Join(temporary, "events-buffer")
	buffer := diskbuffer.At(folder, diskbuffer.Options{Sync: diskbuffer.SyncInterval(time.Second)})
	writer, err := windrow.Open[benchRow](ctx, nowhere{}, "events", windrow.Options{Buffer: buffer})
	if err != nil {
		log.Fatal(err)
	}
	if err := writer.Write(benchRow{ID: 1}); err != nil {
		log.Fatal(err)
	}
	if err := writer.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(writer.Statistics().RowsStored)
	// Output: 1
}
