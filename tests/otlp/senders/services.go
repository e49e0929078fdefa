package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

const (
	every = time.Second
	// Below the SDK's own, of which a thousand would take a gigabyte.
	queued = 256
)

// counting knows how many records were taken.
type counting struct {
	sdklog.Exporter
	taken *atomic.Int64
	first func()
}

func (c *counting) Export(ctx context.Context, records []sdklog.Record) error {
	err := c.Exporter.Export(ctx, records)
	if err == nil {
		c.taken.Add(int64(len(records)))
		c.first()
	}
	return err
}

// Many services in one process, each with an SDK and a connection of its own, write so many records a second, which their SDKs send in
// one request a second. It says when a request of each has been taken, goes on until stdin ends, and then says how many records were.
func services(address string, count, records int) error {
	ctx := context.Background()
	writing, end := context.WithCancel(ctx)
	defer end()
	var taken, made atomic.Int64
	var begun, writers sync.WaitGroup
	begun.Add(count)
	providers := make([]*sdklog.LoggerProvider, count)
	for at := range count {
		exporter, err := otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(address), otlploggrpc.WithInsecure())
		if err != nil {
			return err
		}
		processor := sdklog.NewBatchProcessor(&counting{exporter, &taken, sync.OnceFunc(begun.Done)},
			sdklog.WithExportInterval(every), sdklog.WithMaxQueueSize(queued), sdklog.WithExportMaxBatchSize(queued))
		name := fmt.Sprintf("service-%d", at)
		of := resource.NewSchemaless(attribute.String("service.name", name), attribute.String("host.name", "node-1"))
		providers[at] = sdklog.NewLoggerProvider(sdklog.WithResource(of), sdklog.WithProcessor(processor))
		logger := providers[at].Logger("services")
		writers.Go(func() {
			for number := 0; writing.Err() == nil; number++ {
				for record := range records {
					logger.Emit(ctx, served(name, number*records+record))
				}
				made.Add(int64(records))
				rest(writing, every)
			}
		})
		// They are spread over the second.
		time.Sleep(every / time.Duration(count))
	}
	begun.Wait()
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode("ready"); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	end()
	writers.Wait()
	for _, provider := range providers {
		if err := provider.Shutdown(ctx); err != nil {
			return err
		}
	}
	return out.Encode(map[string]int64{"made": made.Load(), "taken": taken.Load()})
}

func served(service string, number int) (record log.Record) {
	record.SetTimestamp(time.Now())
	record.SetSeverity(log.SeverityInfo)
	record.SetBody(attribute.StringValue(fmt.Sprintf("%s served request %d", service, number)))
	record.AddAttributes(attribute.String("http.request.method", "GET"), attribute.Int("http.response.status_code", 200))
	return record
}

func rest(until context.Context, length time.Duration) {
	select {
	case <-until.Done():
	case <-time.After(length):
	}
}
