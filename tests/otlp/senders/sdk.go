package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
)

const (
	// How long an exporter tries again before it gives a request up: longer than a test takes.
	patience = 10 * time.Minute
	timeout  = 10 * time.Minute
	pause    = 5 * time.Millisecond
	batch    = 50 * time.Millisecond
)

// What the exporters were told is kept: names of log records, spans and points.
type acknowledged struct {
	mutex sync.Mutex
	names map[string][]string
}

func (a *acknowledged) add(signal string, names []string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.names[signal] = append(a.names[signal], names...)
}

func (a *acknowledged) say() error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return json.NewEncoder(os.Stdout).Encode(a.names)
}

type logs struct {
	sdklog.Exporter
	known *acknowledged
}

func (l logs) Export(ctx context.Context, records []sdklog.Record) error {
	// A record is used again after the call.
	names := make([]string, len(records))
	for at, record := range records {
		names[at] = record.Body().AsString()
	}
	err := l.Exporter.Export(ctx, records)
	if err == nil {
		l.known.add("logs", names)
	}
	return err
}

type spans struct {
	trace.SpanExporter
	known *acknowledged
}

func (s spans) ExportSpans(ctx context.Context, ended []trace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, ended)
	if err == nil {
		names := make([]string, len(ended))
		for at, span := range ended {
			names[at] = span.Name()
		}
		s.known.add("spans", names)
	}
	return err
}

type points struct {
	metric.Exporter
	known *acknowledged
}

func (p points) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	names := []string{}
	for _, scope := range metrics.ScopeMetrics {
		for _, one := range scope.Metrics {
			gauge, ok := one.Data.(metricdata.Gauge[int64])
			for at := range gauge.DataPoints {
				if ok {
					names = append(names, fmt.Sprintf("%s %d", one.Name, gauge.DataPoints[at].Value))
				}
			}
		}
	}
	err := p.Exporter.Export(ctx, metrics)
	if err == nil {
		p.known.add("points", names)
	}
	return err
}

type sender func(ctx context.Context, number int)

// Everything that has a name of its own is made until stdin ends, by each protocol, and flushed then.
func sdk(grpcAddress, httpAddress string) error {
	known := &acknowledged{names: map[string][]string{}}
	making, end := context.WithCancel(context.Background())
	var makers sync.WaitGroup
	var flushes []func(context.Context) error
	begin := func(send sender, flush func(context.Context) error) {
		flushes = append(flushes, flush)
		makers.Add(1)
		go func() {
			defer makers.Done()
			for number := 0; making.Err() == nil; number++ {
				send(making, number)
				time.Sleep(pause)
			}
		}()
	}
	for _, protocol := range []string{"grpc", "http"} {
		address := map[string]string{"grpc": grpcAddress, "http": httpAddress}[protocol]
		if err := start(protocol, address, known, begin); err != nil {
			end()
			return err
		}
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	end()
	makers.Wait()
	for _, flush := range flushes {
		if failed := flush(context.Background()); failed != nil {
			fmt.Fprintln(os.Stderr, failed)
		}
	}
	if err != nil {
		return err
	}
	return known.say()
}

func start(protocol, address string, known *acknowledged, begin func(sender, func(context.Context) error)) error {
	ctx := context.Background()
	logExporter, err := logExporter(ctx, protocol, address)
	if err != nil {
		return err
	}
	processor := sdklog.NewBatchProcessor(logs{logExporter, known}, sdklog.WithExportInterval(batch), sdklog.WithExportTimeout(timeout))
	logger := sdklog.NewLoggerProvider(sdklog.WithProcessor(processor))
	writer := logger.Logger("senders")
	begin(func(ctx context.Context, number int) {
		var record log.Record
		record.SetTimestamp(time.Now())
		record.SetBody(attribute.StringValue(fmt.Sprintf("go %s %d", protocol, number)))
		writer.Emit(ctx, record)
	}, logger.Shutdown)

	spanExporter, err := spanExporter(ctx, protocol, address)
	if err != nil {
		return err
	}
	tracer := trace.NewTracerProvider(
		trace.WithBatcher(spans{spanExporter, known}, trace.WithBatchTimeout(batch), trace.WithExportTimeout(timeout)))
	beginner := tracer.Tracer("senders")
	begin(func(ctx context.Context, number int) {
		_, span := beginner.Start(ctx, fmt.Sprintf("go %s %d", protocol, number))
		span.End()
	}, tracer.Shutdown)

	pointExporter, err := pointExporter(ctx, protocol, address)
	if err != nil {
		return err
	}
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader))
	gauge, err := meter.Meter("senders").Int64Gauge("go_" + protocol)
	if err != nil {
		return err
	}
	exporter := points{pointExporter, known}
	begin(func(_ context.Context, number int) {
		gauge.Record(ctx, int64(number))
		var metrics metricdata.ResourceMetrics
		if reader.Collect(ctx, &metrics) == nil {
			if failed := exporter.Export(ctx, &metrics); failed != nil {
				fmt.Fprintln(os.Stderr, failed)
			}
		}
	}, exporter.Shutdown)
	return nil
}

func logExporter(ctx context.Context, protocol, address string) (sdklog.Exporter, error) {
	if protocol == "grpc" {
		retry := otlploggrpc.RetryConfig{Enabled: true, InitialInterval: pause, MaxInterval: time.Second, MaxElapsedTime: patience}
		return otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(address), otlploggrpc.WithInsecure(), otlploggrpc.WithRetry(retry), otlploggrpc.WithTimeout(timeout))
	}
	retry := otlploghttp.RetryConfig{Enabled: true, InitialInterval: pause, MaxInterval: time.Second, MaxElapsedTime: patience}
	return otlploghttp.New(ctx, otlploghttp.WithEndpoint(address), otlploghttp.WithInsecure(), otlploghttp.WithRetry(retry), otlploghttp.WithTimeout(timeout))
}

func spanExporter(ctx context.Context, protocol, address string) (trace.SpanExporter, error) {
	if protocol == "grpc" {
		retry := otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: pause, MaxInterval: time.Second, MaxElapsedTime: patience}
		return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure(), otlptracegrpc.WithRetry(retry), otlptracegrpc.WithTimeout(timeout))
	}
	retry := otlptracehttp.RetryConfig{Enabled: true, InitialInterval: pause, MaxInterval: time.Second, MaxElapsedTime: patience}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure(), otlptracehttp.WithRetry(retry), otlptracehttp.WithTimeout(timeout))
}

func pointExporter(ctx context.Context, protocol, address string) (metric.Exporter, error) {
	if protocol == "grpc" {
		retry := otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: pause, MaxInterval: time.Second, MaxElapsedTime: patience}
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(address), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithRetry(retry), otlpmetricgrpc.WithTimeout(timeout))
	}
	retry := otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: pause, MaxInterval: time.Second, MaxElapsedTime: patience}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(address), otlpmetrichttp.WithInsecure(), otlpmetrichttp.WithRetry(retry), otlpmetrichttp.WithTimeout(timeout))
}
