// Runs the OpenTelemetry collector's own exporter for ClickHouse, as the collector does, on logs, spans and metrics; prints one JSON
// report. What landed is for others to look at.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// rows is how many of everything are exported at once.
const rows = 3

var began = time.Date(2024, 2, 29, 12, 34, 56, 789012345, time.UTC)

type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

var (
	checks []check
	// Inserts sent, by table.
	sent = map[string]int{}
)

func run(name string, body func() error) {
	result := check{Name: name, OK: true}
	if err := body(); err != nil {
		result.OK, result.Detail = false, err.Error()
	}
	checks = append(checks, result)
}

// variants are ways to set the exporter up; each has tables of its own.
var variants = map[string]map[string]any{
	"default":     {},
	"none":        {"compress": "none"},
	"zstd":        {"compress": "zstd"},
	"sync":        {"async_insert": false},
	"not_waiting": {"connection_params": map[string]any{"wait_for_async_insert": "0"}},
	"json":        {"json": true},
}

func configured(prefix string, options map[string]any) component.Config {
	protocol := map[string]string{"native": "tcp", "http": "http"}[os.Getenv("CLICKHOUSE_PROTOCOL")]
	named := func(kind string) map[string]any { return map[string]any{"name": prefix + "_" + kind} }
	all := map[string]any{
		"endpoint": protocol + "://" + os.Getenv("CLICKHOUSE_HOST") + ":" + os.Getenv("CLICKHOUSE_PORT"),
		"username": os.Getenv("CLICKHOUSE_USER"), "password": os.Getenv("CLICKHOUSE_PASSWORD"),
		"database": os.Getenv("CLICKHOUSE_DATABASE"), "logs_table_name": prefix + "_logs", "traces_table_name": prefix + "_traces",
		"metrics_tables": map[string]any{
			"gauge": named("gauge"), "sum": named("sum"), "summary": named("summary"), "histogram": named("histogram"),
			"exponential_histogram": named("exponential"),
		},
		// What can't be stored is to be told at once.
		"sending_queue": map[string]any{"enabled": false}, "retry_on_failure": map[string]any{"enabled": false},
	}
	maps.Copy(all, options)
	config := clickhouseexporter.NewFactory().CreateDefaultConfig()
	if err := confmap.NewFromStringMap(all).Unmarshal(config); err != nil {
		panic(err)
	}
	return config
}

// started is an exporter between its start and its end.
func started(exporter component.Component, err error, export func() error) error {
	ctx := context.Background()
	if err != nil {
		return err
	}
	if err := exporter.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	return errors.Join(export(), exporter.Shutdown(ctx))
}

func exportAll(prefix string, options map[string]any) {
	ctx, factory, config := context.Background(), clickhouseexporter.NewFactory(), configured(prefix, options)
	settings := exportertest.NewNopSettings(factory.Type())
	sent[prefix+"_logs"]++
	run(prefix+" logs", func() error {
		exporter, err := factory.CreateLogs(ctx, settings, config)
		return started(exporter, err, func() error { return exporter.ConsumeLogs(ctx, logs()) })
	})
	sent[prefix+"_traces"]++
	run(prefix+" traces", func() error {
		exporter, err := factory.CreateTraces(ctx, settings, config)
		return started(exporter, err, func() error { return exporter.ConsumeTraces(ctx, traces()) })
	})
	for _, kind := range []string{"gauge", "sum", "summary", "histogram", "exponential"} {
		sent[prefix+"_"+kind]++
	}
	run(prefix+" metrics", func() error {
		exporter, err := factory.CreateMetrics(ctx, settings, config)
		return started(exporter, err, func() error { return exporter.ConsumeMetrics(ctx, measured()) })
	})
}

func at(n int) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(began.Add(time.Duration(n) * time.Second))
}

func describe(resource pcommon.Resource, scope pcommon.InstrumentationScope) {
	resource.Attributes().PutStr("service.name", "windrow")
	resource.Attributes().PutStr("host.name", "it's \"here\"")
	scope.SetName("tests")
	scope.SetVersion("1.0")
	scope.Attributes().PutBool("whole", true)
}

func logs() plog.Logs {
	all := plog.NewLogs()
	resource := all.ResourceLogs().AppendEmpty()
	scope := resource.ScopeLogs().AppendEmpty()
	describe(resource.Resource(), scope.Scope())
	for n := range rows {
		record := scope.LogRecords().AppendEmpty()
		record.SetTimestamp(at(n))
		record.SetSeverityNumber(plog.SeverityNumberWarn)
		record.SetSeverityText("WARN")
		record.Body().SetStr(fmt.Sprintf("line %d ‘quoted’ \\ \t\n", n))
		record.Attributes().PutInt("n", int64(n))
		record.Attributes().PutStr("a.b", "nested")
		record.SetTraceID([16]byte{1, 2, 3, byte(n)})
		record.SetSpanID([8]byte{9, byte(n)})
	}
	return all
}

func traces() ptrace.Traces {
	all := ptrace.NewTraces()
	resource := all.ResourceSpans().AppendEmpty()
	scope := resource.ScopeSpans().AppendEmpty()
	describe(resource.Resource(), scope.Scope())
	for n := range rows {
		span := scope.Spans().AppendEmpty()
		span.SetName(fmt.Sprintf("span %d", n))
		span.SetTraceID([16]byte{1, 2, 3, byte(n)})
		span.SetSpanID([8]byte{9, byte(n)})
		span.SetKind(ptrace.SpanKindServer)
		span.SetStartTimestamp(at(n))
		span.SetEndTimestamp(at(n + 1))
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage("it failed")
		span.Attributes().PutStr("method", "GET")
		for e := range n {
			event := span.Events().AppendEmpty()
			event.SetTimestamp(at(n))
			event.SetName(fmt.Sprintf("event %d", e))
			event.Attributes().PutInt("e", int64(e))
		}
		link := span.Links().AppendEmpty()
		link.SetTraceID([16]byte{7})
		link.SetSpanID([8]byte{8})
		link.Attributes().PutStr("linked", "yes")
	}
	return all
}

func measured() pmetric.Metrics {
	all := pmetric.NewMetrics()
	resource := all.ResourceMetrics().AppendEmpty()
	scope := resource.ScopeMetrics().AppendEmpty()
	describe(resource.Resource(), scope.Scope())
	metric := func(name string) pmetric.Metric {
		metric := scope.Metrics().AppendEmpty()
		metric.SetName(name)
		metric.SetUnit("s")
		return metric
	}
	gauge, sum := metric("gauge").SetEmptyGauge(), metric("sum").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	summary, histogram := metric("summary").SetEmptySummary(), metric("histogram").SetEmptyHistogram()
	exponential := metric("exponential").SetEmptyExponentialHistogram()
	for n := range rows {
		for _, points := range []pmetric.NumberDataPointSlice{gauge.DataPoints(), sum.DataPoints()} {
			point := points.AppendEmpty()
			point.SetTimestamp(at(n))
			point.SetDoubleValue(float64(n) + 0.5)
			point.Attributes().PutInt("n", int64(n))
			exemplar := point.Exemplars().AppendEmpty()
			exemplar.SetTimestamp(at(n))
			exemplar.SetDoubleValue(0.25)
			exemplar.FilteredAttributes().PutStr("kept", "no")
		}
		quantiles := summary.DataPoints().AppendEmpty()
		quantiles.SetTimestamp(at(n))
		quantiles.SetCount(uint64(n))
		quantile := quantiles.QuantileValues().AppendEmpty()
		quantile.SetQuantile(0.5)
		quantile.SetValue(float64(n))
		buckets := histogram.DataPoints().AppendEmpty()
		buckets.SetTimestamp(at(n))
		buckets.SetCount(uint64(n))
		buckets.BucketCounts().FromRaw([]uint64{1, 2, uint64(n)})
		buckets.ExplicitBounds().FromRaw([]float64{0.1, 1})
		powers := exponential.DataPoints().AppendEmpty()
		powers.SetTimestamp(at(n))
		powers.SetScale(int32(n))
		powers.Positive().SetOffset(1)
		powers.Positive().BucketCounts().FromRaw([]uint64{uint64(n), 4})
	}
	return all
}

func main() {
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		exportAll(name, variants[name])
	}
	report, _ := json.Marshal(map[string]any{"finished": true, "checks": checks, "sent": sent})
	fmt.Println(string(report))
}
