// Receives traces as the OpenTelemetry collector does, with its own OTLP service, and prints what came: one line of JSON
// for each export, with the metadata of the call.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

type receiver struct {
	ptraceotlp.UnimplementedGRPCServer
	mutex sync.Mutex
}

func (r *receiver) Export(ctx context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	given, _ := metadata.FromIncomingContext(ctx)
	traces, err := (&ptrace.JSONMarshaler{}).MarshalTraces(request.Traces())
	if err != nil {
		return ptraceotlp.NewExportResponse(), err
	}
	line, err := json.Marshal(map[string]any{"metadata": given, "traces": json.RawMessage(traces)})
	if err != nil {
		return ptraceotlp.NewExportResponse(), err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, err = fmt.Println(string(line))
	return ptraceotlp.NewExportResponse(), err
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(listener.Addr())
		server := grpc.NewServer()
		ptraceotlp.RegisterGRPCServer(server, &receiver{})
		err = server.Serve(listener)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
