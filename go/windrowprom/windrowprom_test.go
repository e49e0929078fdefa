package windrowprom_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	windrow "windrow.dev/go"
	"windrow.dev/go/windrowprom"
)

type fixed windrow.Statistics

func (f fixed) Statistics() windrow.Statistics { return windrow.Statistics(f) }

func TestMetricsOfAWriter(t *testing.T) {
	collector := windrowprom.NewCollector()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	collector.Add("events", fixed{RowsWritten: 7, BytesHeld: 12})
	wanted := `# HELP windrow_writer_held_bytes Bytes that count for the writer's limit.
# TYPE windrow_writer_held_bytes gauge
windrow_writer_held_bytes{writer="events"} 12
# HELP windrow_writer_rows_written_total Rows that the writer has taken.
# TYPE windrow_writer_rows_written_total counter
windrow_writer_rows_written_total{writer="events"} 7
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(wanted), "windrow_writer_held_bytes", "windrow_writer_rows_written_total")
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	collector.Remove("events")
	if count := testutil.CollectAndCount(collector); count != 0 {
		t.Fatal(count)
	}
}
