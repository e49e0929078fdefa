// Pushes export requests through the OpenTelemetry collector's own exporter for ClickHouse, as the collector's receiver and exporter
// do together. Its arguments are a signal and files with requests in Protobuf, or in JSON if they end so; it makes the tables and
// prints one JSON report with what became of each request.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// request is what the three kinds of export requests have in common.
type request interface {
	UnmarshalProto([]byte) error
	UnmarshalJSON([]byte) error
}

// outcome is empty where all went well.
type outcome struct {
	Decode string `json:"decode"`
	Export string `json:"export"`
}

// signals make a request, and an exporter with what takes such a request.
var signals = map[string]func(context.Context) (component.Component, func() request, func(request) error){
	"logs": func(ctx context.Context) (component.Component, func() request, func(request) error) {
		exporter := must(factory.CreateLogs(ctx, settings, configured()))
		empty := func() request { r := plogotlp.NewExportRequest(); return &r }
		return exporter, empty, func(r request) error { return exporter.ConsumeLogs(ctx, r.(*plogotlp.ExportRequest).Logs()) }
	},
	"traces": func(ctx context.Context) (component.Component, func() request, func(request) error) {
		exporter := must(factory.CreateTraces(ctx, settings, configured()))
		empty := func() request { r := ptraceotlp.NewExportRequest(); return &r }
		return exporter, empty, func(r request) error { return exporter.ConsumeTraces(ctx, r.(*ptraceotlp.ExportRequest).Traces()) }
	},
	"metrics": func(ctx context.Context) (component.Component, func() request, func(request) error) {
		exporter := must(factory.CreateMetrics(ctx, settings, configured()))
		empty := func() request { r := pmetricotlp.NewExportRequest(); return &r }
		return exporter, empty, func(r request) error { return exporter.ConsumeMetrics(ctx, r.(*pmetricotlp.ExportRequest).Metrics()) }
	},
}

var (
	factory  = clickhouseexporter.NewFactory()
	settings = exportertest.NewNopSettings(factory.Type())
)

// configured takes the server from the environment, and further options of the exporter from one of its variables.
func configured() component.Config {
	options := map[string]any{}
	if given := os.Getenv("EXPORTER_OPTIONS"); given != "" {
		check(json.Unmarshal([]byte(given), &options))
	}
	options["endpoint"] = os.Getenv("CLICKHOUSE_PROTOCOL") + "://" + os.Getenv("CLICKHOUSE_HOST") + ":" + os.Getenv("CLICKHOUSE_PORT")
	options["username"], options["password"] = os.Getenv("CLICKHOUSE_USER"), os.Getenv("CLICKHOUSE_PASSWORD")
	options["database"] = os.Getenv("CLICKHOUSE_DATABASE")
	options["async_insert"] = false
	// What can't be stored is to be told at once.
	options["sending_queue"] = map[string]any{"enabled": false}
	options["retry_on_failure"] = map[string]any{"enabled": false}
	config := factory.CreateDefaultConfig()
	check(confmap.NewFromStringMap(options).Unmarshal(config))
	return config
}

func pushed(file string, into request, export func(request) error) (result outcome) {
	bytes := must(os.ReadFile(file))
	read := into.UnmarshalProto
	if strings.HasSuffix(file, ".json") {
		read = into.UnmarshalJSON
	}
	if err := read(bytes); err != nil {
		result.Decode = err.Error()
	} else if err := export(into); err != nil {
		result.Export = err.Error()
	}
	return result
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	exporter, empty, export := signals[os.Args[1]](ctx)
	check(exporter.Start(ctx, componenttest.NewNopHost()))
	outcomes := map[string]outcome{}
	for _, file := range os.Args[2:] {
		outcomes[file] = pushed(file, empty(), export)
	}
	check(exporter.Shutdown(ctx))
	fmt.Println(string(must(json.Marshal(outcomes))))
}
