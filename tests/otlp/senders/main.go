// Sends telemetry as those who use OpenTelemetry do: by Go's SDK, and by the collector.
//
//	senders sdk ADDRESS_GRPC ADDRESS_HTTP   until stdin ends; then says what was acknowledged
//	senders collector CONFIG                until it is told to end
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "sdk":
		err = sdk(os.Args[2], os.Args[3])
	case len(os.Args) == 3 && os.Args[1] == "collector":
		err = collector(os.Args[2])
	default:
		err = fmt.Errorf("usage: %s sdk ADDRESS_GRPC ADDRESS_HTTP | collector CONFIG", os.Args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
