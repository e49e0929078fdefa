// Sends telemetry as those who use OpenTelemetry do: by Go's SDK, and by the collector.
//
//	senders sdk ADDRESS_GRPC ADDRESS_HTTP          until stdin ends; then says what was acknowledged
//	senders collector CONFIG                       until it is told to end
//	senders load ADDRESS CONNECTIONS RECORDS TIME  for benchmarks: see load.go
//	senders services ADDRESS SERVICES RECORDS      for benchmarks: see services.go
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func run(given []string) error {
	switch {
	case len(given) == 3 && given[0] == "sdk":
		return sdk(given[1], given[2])
	case len(given) == 2 && given[0] == "collector":
		return collector(given[1])
	case len(given) == 5 && given[0] == "load":
		var connections, records int
		var from int64
		if _, err := fmt.Sscan(strings.Join(given[2:], " "), &connections, &records, &from); err != nil {
			return err
		}
		return load(given[1], connections, records, from)
	case len(given) == 4 && given[0] == "services":
		var count, records int
		if _, err := fmt.Sscan(strings.Join(given[2:], " "), &count, &records); err != nil {
			return err
		}
		return services(given[1], count, records)
	}
	return errors.New("usage: senders sdk ADDRESS_GRPC ADDRESS_HTTP | collector CONFIG | load ADDRESS CONNECTIONS RECORDS TIME | " +
		"services ADDRESS SERVICES RECORDS")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
