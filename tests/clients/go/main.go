// Drives a ClickHouse with clickhouse-go, over HTTP or the native protocol, or with ch-go; prints one JSON report.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

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

// run notes the outcome of one check; a panic of the driver is a failed check, not the end of the report.
func run(name string, body func() error) {
	result := check{Name: name, OK: true}
	defer func() {
		if panicked := recover(); panicked != nil {
			result.OK, result.Detail = false, fmt.Sprintf("panic: %v", panicked)
		}
		checks = append(checks, result)
	}()
	if err := body(); err != nil {
		result.OK, result.Detail = false, err.Error()
	}
}

// native is whether the driver is to speak ClickHouse's own protocol.
var native = os.Getenv("CLICKHOUSE_PROTOCOL") == "native"

// overHTTP runs a check of something that the driver does over HTTP alone.
func overHTTP(name string, body func() error) {
	if !native {
		run(name, body)
	}
}

func options(compression *clickhouse.Compression) *clickhouse.Options {
	protocol := clickhouse.HTTP
	if native {
		protocol = clickhouse.Native
	}
	return &clickhouse.Options{
		Protocol:    protocol,
		Addr:        []string{os.Getenv("CLICKHOUSE_HOST") + ":" + os.Getenv("CLICKHOUSE_PORT")},
		Compression: compression,
		Auth: clickhouse.Auth{
			Database: os.Getenv("CLICKHOUSE_DATABASE"),
			Username: os.Getenv("CLICKHOUSE_USER"),
			Password: os.Getenv("CLICKHOUSE_PASSWORD"),
		},
	}
}

func open(compression *clickhouse.Compression) driver.Conn {
	conn, err := clickhouse.Open(options(compression))
	if err != nil {
		panic(err)
	}
	return conn
}

func equal(got, expected any) error {
	if !reflect.DeepEqual(got, expected) {
		return fmt.Errorf("got %#v, expected %#v", got, expected)
	}
	return nil
}

// fails expects ClickHouse's code in the driver's error, which is an Exception where the driver made one of it.
func fails(err error, code int32) error {
	var exception *clickhouse.Exception
	if err == nil {
		return errors.New("no error was returned")
	}
	if !errors.As(err, &exception) {
		return fmt.Errorf("no ClickHouse exception but %T: %w", err, err)
	}
	return equal(exception.Code, code)
}

// main runs one of its programs: everything the driver does, every way to insert, every type, an OpenTelemetry exporter's inserts, all
// of ch-go's, or the benchmark's load.
func main() {
	ctx := context.Background()
	if os.Args[1] == "load" {
		load(ctx, os.Args[2])
		return
	}
	conn := open(nil)
	switch os.Args[1] {
	case "chgo":
		lowChecks(ctx)
	case "driver":
		run("ping", func() error { return conn.Ping(ctx) })
		run("server version", func() error {
			_, err := conn.ServerVersion()
			return err
		})
		insertChecks(ctx, conn)
		readChecks(ctx, conn)
		databaseSQLChecks(ctx)
	case "ways":
		waysToInsert(ctx, conn)
	case "telemetry":
		telemetryChecks(ctx, conn)
	case "types":
		typeChecks(ctx, conn)
	}
	if err := conn.Close(); err != nil {
		panic(err)
	}
	report, _ := json.Marshal(map[string]any{"finished": true, "checks": checks, "sent": sent})
	fmt.Println(string(report))
}
