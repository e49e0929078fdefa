package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The exporter's other kinds of table: histograms with nested exemplars, and logs whose attributes are JSON.
const (
	createHistograms = `CREATE TABLE %s (ResourceAttributes Map(LowCardinality(String), String), ServiceName LowCardinality(String),
	MetricName String, Attributes Map(LowCardinality(String), String), TimeUnix DateTime64(9) CODEC(Delta, ZSTD(1)),
	Count UInt64 CODEC(Delta, ZSTD(1)), Sum Float64, BucketCounts Array(UInt64), ExplicitBounds Array(Float64),
	Exemplars Nested (FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime64(9), Value Float64, SpanId String, TraceId String),
	Flags UInt32, Min Float64, Max Float64, AggregationTemporality Int32,
	INDEX idx_attr_key mapKeys(Attributes) TYPE bloom_filter(0.01) GRANULARITY 1)
	ENGINE = MergeTree PARTITION BY toDate(TimeUnix) ORDER BY (ServiceName, MetricName, Attributes, toUnixTimestamp64Nano(TimeUnix))`
	insertHistograms = `INSERT INTO "%s"."%s" (ResourceAttributes, ServiceName, MetricName, Attributes, TimeUnix, Count, Sum,
	BucketCounts, ExplicitBounds, Exemplars.FilteredAttributes, Exemplars.TimeUnix, Exemplars.Value, Exemplars.SpanId,
	Exemplars.TraceId, Flags, Min, Max, AggregationTemporality)`
	createJSONLogs = `CREATE TABLE %s (Timestamp DateTime64(9), SeverityText LowCardinality(String), ServiceName LowCardinality(String),
	Body String, LogAttributes JSON, LogAttributesKeys Array(LowCardinality(String)))
	ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, toDateTime(Timestamp), Timestamp)`
	insertJSONLogs = `INSERT INTO "%s"."%s" (Timestamp, SeverityText, ServiceName, Body, LogAttributes, LogAttributesKeys)`
)

func histogramRow(n int) []any {
	exemplars := []attributes{{"user": fmt.Sprint(n)}}
	return []any{
		attributes{"service.name": "cart"}, "cart", "latency", attributes{"n": fmt.Sprint(n)}, at(n), uint64(n), float64(n) / 4,
		[]uint64{uint64(n), 0, 7}, []float64{0.5, 1}, exemplars, []any{at(n)}, []float64{0.25}, []string{"span"}, []string{"trace"},
		uint32(0), float64(0), float64(n), int32(2),
	}
}

func jsonLogRow(n int) []any {
	notes, err := json.Marshal(map[string]any{"n": n, "http": map[string]any{"path": "/", "codes": []int{200, n}}, "ok": n%2 == 0})
	if err != nil {
		panic(err)
	}
	return []any{at(n), "INFO", "cart", fmt.Sprintf("message %d", n), notes, []string{"n", "http.path"}}
}

func exportKind(ctx context.Context, conn, own driver.Conn, table, create, insert string, row func(int) []any, check string) error {
	if err := conn.Exec(ctx, fmt.Sprintf(create, table)); err != nil {
		return err
	}
	if err := export(ctx, own, insert, table, row); err != nil {
		return err
	}
	if err := countEventually(ctx, conn, "SELECT count() FROM "+table, telemetryRows); err != nil {
		return err
	}
	return countEventually(ctx, conn, "SELECT count() FROM "+table+" WHERE "+check, telemetryRows)
}

func otherTelemetry(ctx context.Context, conn, own driver.Conn, name string) {
	histograms, logs := "otel_histograms_"+name, "otel_json_"+name
	sent[histograms]++
	sent[logs]++
	run("histograms "+name, func() error {
		check := `Sum = Count / 4 AND BucketCounts = [Count, 0, 7] AND ExplicitBounds = [0.5, 1] AND Attributes['n'] = toString(Count)
			AND Exemplars.FilteredAttributes = [map('user', toString(Count))] AND Exemplars.TimeUnix = [TimeUnix] AND Max = Count
			AND TimeUnix = toDateTime64('2024-02-29 23:59:50.123456789', 9, 'UTC') + Count AND AggregationTemporality = 2`
		return exportKind(ctx, conn, own, histograms, createHistograms, insertHistograms, histogramRow, check)
	})
	run("logs with JSON "+name, func() error {
		check := `Body = concat('message ', LogAttributes.n::String) AND LogAttributes.http.path::String = '/'
			AND LogAttributes.http.codes[2]::Int64 = LogAttributes.n::Int64 AND LogAttributes.ok::Bool = (LogAttributes.n::Int64 % 2 = 0)
			AND Timestamp = toDateTime64('2024-02-29 23:59:50.123456789', 9, 'UTC') + LogAttributes.n::Int64`
		return exportKind(ctx, conn, own, logs, createJSONLogs, insertJSONLogs, jsonLogRow, check)
	})
}
