// Command otlp_logs sends log records over gRPC: by OpenTelemetry's SDK, into the table otel_logs behind Windrow. The
// program's own log goes there through log/slog.
//
//	go run ./otlp_logs http://127.0.0.1:4317 default ''
package main

import (
	"context"
	"encoding/base64"
	"log"
	"log/slog"
	"os"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

func run(ctx context.Context, address, user, password string) error {
	login := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	exporter, err := otlploggrpc.New(ctx,
		otlploggrpc.WithEndpointURL(address),
		otlploggrpc.WithHeaders(map[string]string{"authorization": "Basic " + login}))
	if err != nil {
		return err
	}
	provider := sdklog.NewLoggerProvider(
		sdklog.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))),
		sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))

	logger := slog.New(otelslog.NewHandler("orders", otelslog.WithLoggerProvider(provider)))
	logger.InfoContext(ctx, "paid", "amount", 12, "country", "pl")
	logger.WarnContext(ctx, "late", "days", 3)

	// It returns when Windrow has taken all of them.
	return provider.Shutdown(ctx)
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}
