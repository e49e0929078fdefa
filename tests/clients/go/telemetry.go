package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The tables that the OpenTelemetry collector's exporter creates, down to their defaults, partitions and the view behind the spans.
var telemetryTables = []string{
	`CREATE TABLE %s (Timestamp DateTime64(9) CODEC(Delta(8), ZSTD(1)), TimestampTime DateTime DEFAULT toDateTime(Timestamp),
	TraceId String, SpanId String, TraceFlags UInt8, SeverityText LowCardinality(String), SeverityNumber UInt8,
	ServiceName LowCardinality(String), Body String, ResourceSchemaUrl LowCardinality(String),
	ResourceAttributes Map(LowCardinality(String), String), ScopeSchemaUrl LowCardinality(String), ScopeName String,
	ScopeVersion LowCardinality(String), ScopeAttributes Map(LowCardinality(String), String),
	LogAttributes Map(LowCardinality(String), String),
	INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
	INDEX idx_body Body TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8)
	ENGINE = MergeTree PARTITION BY toDate(TimestampTime) ORDER BY (ServiceName, TimestampTime, Timestamp)`,
	`CREATE TABLE %s (Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)), TraceId String, SpanId String, ParentSpanId String,
	TraceState String, SpanName LowCardinality(String), SpanKind LowCardinality(String), ServiceName LowCardinality(String),
	ResourceAttributes Map(LowCardinality(String), String), ScopeName String, ScopeVersion String,
	SpanAttributes Map(LowCardinality(String), String), Duration UInt64, StatusCode LowCardinality(String), StatusMessage String,
	Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)),
	Links Nested (TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String)),
	INDEX idx_duration Duration TYPE minmax GRANULARITY 1)
	ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))`,
}

const (
	lookupTable = `CREATE TABLE %[1]s_trace_id_ts (TraceId String, Start DateTime, End DateTime) ENGINE = MergeTree ORDER BY (TraceId, Start)`
	lookupView  = `CREATE MATERIALIZED VIEW %[1]s_trace_id_ts_mv TO %[1]s_trace_id_ts
	AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End FROM %[1]s WHERE TraceId != '' GROUP BY TraceId`
	insertLogs = `INSERT INTO "%s"."%s" (Timestamp, TraceId, SpanId, TraceFlags, SeverityText, SeverityNumber, ServiceName, Body,
	ResourceSchemaUrl, ResourceAttributes, ScopeSchemaUrl, ScopeName, ScopeVersion, ScopeAttributes, LogAttributes)`
	insertSpans = `INSERT INTO "%s"."%s" (Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, ServiceName,
	ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, Duration, StatusCode, StatusMessage, Events.Timestamp, Events.Name,
	Events.Attributes, Links.TraceId, Links.SpanId, Links.TraceState, Links.Attributes)`
	telemetryRows = 20
)

type attributes = map[string]string

func at(n int) time.Time { return time.Date(2024, 2, 29, 23, 59, 50+n, 123456789, time.UTC) }

func logRow(n int) []any {
	return []any{
		at(n), fmt.Sprintf("%032x", n), fmt.Sprintf("%016x", n), uint8(1), "INFO", uint8(9), fmt.Sprintf("service %d", n%2),
		fmt.Sprintf("message %d\nof two lines", n), "https://opentelemetry.io/schemas/1.26.0", attributes{"service.name": "cart", "host": "a"},
		"", "scope", "1.0", attributes{}, attributes{"n": fmt.Sprint(n), "empty": ""},
	}
}

func spanRow(n int) []any {
	times, names, notes := []time.Time{}, []string{}, []attributes{}
	for event := range n % 3 {
		times, names, notes = append(times, at(n)), append(names, "event"), append(notes, attributes{"event": fmt.Sprint(event)})
	}
	return []any{
		at(n), fmt.Sprintf("%032x", n/2), fmt.Sprintf("%016x", n), "", "", "GET /", "Server", "cart", attributes{"service.name": "cart"},
		"scope", "1.0", attributes{"http.status_code": "200"}, uint64(1000 + n), "Ok", "", times, names, notes,
		[]string{"link"}, []string{"span"}, []string{""}, []attributes{{"linked": "yes"}},
	}
}

// exporter connects as the exporter does: by a DSN whose parameters are settings.
func exporter(parameters string) driver.Conn {
	login := url.UserPassword(os.Getenv("CLICKHOUSE_USER"), os.Getenv("CLICKHOUSE_PASSWORD"))
	address := os.Getenv("CLICKHOUSE_HOST") + ":" + os.Getenv("CLICKHOUSE_PORT")
	scheme := "http"
	if native {
		scheme = "tcp"
	}
	settings, err := clickhouse.ParseDSN(fmt.Sprintf("%s://%s@%s/default?%s", scheme, login, address, parameters))
	if err != nil {
		panic(err)
	}
	conn, err := clickhouse.Open(settings)
	if err != nil {
		panic(err)
	}
	return conn
}

func export(ctx context.Context, conn driver.Conn, statement, table string, row func(int) []any) error {
	batch, err := conn.PrepareBatch(ctx, fmt.Sprintf(statement, os.Getenv("CLICKHOUSE_DATABASE"), table))
	if err != nil {
		return err
	}
	for n := range telemetryRows {
		if err := batch.Append(row(n)...); err != nil {
			return err
		}
	}
	return batch.Send()
}

func telemetryChecks(ctx context.Context, conn driver.Conn) {
	for name, parameters := range map[string]string{
		"async": "async_insert=true", "sync": "async_insert=false", "unset": "", "lz4": "async_insert=true&compress=lz4",
		"not_waiting": "async_insert=1&wait_for_async_insert=0",
	} {
		logs, spans, viewed := "otel_logs_"+name, "otel_traces_"+name, "otel_viewed_"+name
		for _, table := range []string{logs, spans, viewed} {
			sent[table]++
		}
		own := exporter(parameters)
		run("logs "+name, func() error {
			if err := conn.Exec(ctx, fmt.Sprintf(telemetryTables[0], logs)); err != nil {
				return err
			}
			if err := export(ctx, own, insertLogs, logs, logRow); err != nil {
				return err
			}
			return logsStored(ctx, conn, logs)
		})
		run("spans "+name, func() error { return exportSpans(ctx, conn, own, spans, false) })
		run("spans behind a view "+name, func() error { return exportSpans(ctx, conn, own, viewed, true) })
		otherTelemetry(ctx, conn, own, name)
		if err := own.Close(); err != nil {
			panic(err)
		}
	}
}

func exportSpans(ctx context.Context, conn, own driver.Conn, table string, view bool) error {
	statements := []string{telemetryTables[1]}
	if view {
		statements = append(statements, lookupTable, lookupView)
	}
	for _, statement := range statements {
		if err := conn.Exec(ctx, fmt.Sprintf(statement, table)); err != nil {
			return err
		}
	}
	if err := export(ctx, own, insertSpans, table, spanRow); err != nil {
		return err
	}
	if err := spansStored(ctx, conn, table); err != nil || !view {
		return err
	}
	return countEventually(ctx, conn, "SELECT count() FROM (SELECT DISTINCT TraceId FROM "+table+"_trace_id_ts)", telemetryRows/2)
}

func countEventually(ctx context.Context, conn driver.Conn, query string, expected uint64) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		var count uint64
		if err := conn.QueryRow(ctx, query).Scan(&count); err != nil {
			return err
		}
		if count >= expected || time.Now().After(deadline) {
			return equal(count, expected)
		}
	}
}

func logsStored(ctx context.Context, conn driver.Conn, table string) error {
	if err := countEventually(ctx, conn, "SELECT count() FROM "+table, telemetryRows); err != nil {
		return err
	}
	for n := range telemetryRows {
		var when, seconds time.Time
		var body, service string
		var resource, own attributes
		query := "SELECT Timestamp, TimestampTime, Body, ServiceName, ResourceAttributes, LogAttributes FROM " + table + " WHERE TraceId = ?"
		row := conn.QueryRow(ctx, query, fmt.Sprintf("%032x", n))
		if err := row.Scan(&when, &seconds, &body, &service, &resource, &own); err != nil {
			return err
		}
		sentRow := logRow(n)
		got := []any{when.UTC(), seconds.UTC(), body, service, resource, own}
		if err := equal(got, []any{at(n), at(n).Truncate(time.Second), sentRow[7], sentRow[6], sentRow[9], sentRow[14]}); err != nil {
			return err
		}
	}
	return nil
}

func spansStored(ctx context.Context, conn driver.Conn, table string) error {
	if err := countEventually(ctx, conn, "SELECT count() FROM "+table, telemetryRows); err != nil {
		return err
	}
	for n := range telemetryRows {
		var when time.Time
		var duration uint64
		var names []string
		var events, links []attributes
		query := "SELECT Timestamp, Duration, Events.Name, Events.Attributes, Links.Attributes FROM " + table + " WHERE SpanId = ?"
		row := conn.QueryRow(ctx, query, fmt.Sprintf("%016x", n))
		if err := row.Scan(&when, &duration, &names, &events, &links); err != nil {
			return err
		}
		sentRow := spanRow(n)
		got := []any{when.UTC(), duration, names, events, links}
		if err := equal(got, []any{at(n), sentRow[12], sentRow[16], sentRow[17], sentRow[21]}); err != nil {
			return err
		}
	}
	return nil
}
