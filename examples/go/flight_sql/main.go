// Command flight_sql inserts rows over gRPC: by Arrow Flight SQL, into a ClickHouse or DuckDB behind Windrow. A stream of
// batches lands whole or not at all, and so do all rows of a prepared insert.
//
//	go run ./flight_sql grpc://127.0.0.1:8815 default ''
package main

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "what", Type: arrow.BinaryTypes.String},
}, nil)

// events makes a batch of rows that begin at an id.
func events(first int64, what ...string) arrow.RecordBatch {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	for index, text := range what {
		builder.Field(0).(*array.Int64Builder).Append(first + int64(index))
		builder.Field(1).(*array.StringBuilder).Append(text)
	}
	return builder.NewRecordBatch()
}

func run(ctx context.Context, address, user, password string) error {
	server, err := url.Parse(address)
	if err != nil {
		return err
	}
	client, err := flightsql.NewClient(server.Host, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer client.Close()
	if ctx, err = client.Client.AuthenticateBasicToken(ctx, user, password); err != nil {
		return err
	}

	// The table is made if it is not there. All batches are one append.
	batches, err := array.NewRecordReader(columns, []arrow.RecordBatch{events(1, "started", "seen"), events(3, "ended")})
	if err != nil {
		return err
	}
	ingested, err := client.ExecuteIngest(ctx, batches, &flightsql.ExecuteIngestOpts{
		Table: "flight_events",
		TableDefinitionOptions: &flightsql.TableDefinitionOptions{
			IfNotExist: flightsql.TableDefinitionOptionsTableNotExistOptionCreate,
			IfExists:   flightsql.TableDefinitionOptionsTableExistsOptionAppend,
		},
	})
	if err != nil {
		return err
	}

	statement, err := client.Prepare(ctx, "INSERT INTO flight_events (id, what) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer statement.Close(ctx)
	statement.SetParameters(events(4, "started again", "ended again"))
	inserted, err := statement.ExecuteUpdate(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows ingested, %d inserted\n", ingested, inserted)
	return nil
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}
