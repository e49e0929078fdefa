// Package windrowprom shows the statistics of writers to Prometheus.
//
//	collector := windrowprom.NewCollector()
//	prometheus.MustRegister(collector)
//	collector.Add("events", writer)
package windrowprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	windrow "windrow.dev/go"
)

// Source is a writer, whatever its rows are.
type Source interface {
	Statistics() windrow.Statistics
}

// metric is one of a writer's counts.
type metric struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(windrow.Statistics) float64
}

func counter(name, help string, value func(windrow.Statistics) uint64) metric {
	return newMetric(name, help, prometheus.CounterValue, func(s windrow.Statistics) float64 { return float64(value(s)) })
}

func gauge(name, help string, value func(windrow.Statistics) float64) metric {
	return newMetric(name, help, prometheus.GaugeValue, value)
}

func newMetric(name, help string, kind prometheus.ValueType, value func(windrow.Statistics) float64) metric {
	return metric{prometheus.NewDesc("windrow_writer_"+name, help, []string{"writer"}, nil), kind, value}
}

var metrics = []metric{
	counter("rows_written_total", "Rows that the writer has taken.", func(s windrow.Statistics) uint64 { return s.RowsWritten }),
	counter("rows_stored_total", "Rows that are stored.", func(s windrow.Statistics) uint64 { return s.RowsStored }),
	counter("rows_failed_total", "Rows that came back with an error.", func(s windrow.Statistics) uint64 { return s.RowsFailed }),
	counter("rows_left_over_total", "Rows that were found of processes that have died.",
		func(s windrow.Statistics) uint64 { return s.RowsLeftOver }),
	counter("batches_stored_total", "Batches that are stored.", func(s windrow.Statistics) uint64 { return s.BatchesStored }),
	counter("batches_split_total", "Batches that were cut to find the guilty rows.",
		func(s windrow.Statistics) uint64 { return s.BatchesSplit }),
	counter("retries_total", "Attempts after a batch's first.", func(s windrow.Statistics) uint64 { return s.Retries }),
	counter("errors_dropped_total", "Errors that gave way to newer ones, as nobody read them.",
		func(s windrow.Statistics) uint64 { return s.ErrorsDropped }),
	counter("damaged_bytes_total", "Bytes of a buffer that could not be read as what was written.",
		func(s windrow.Statistics) uint64 { return s.DamagedBytes }),
	gauge("rows_waiting", "Rows that wait for their batch.", func(s windrow.Statistics) float64 { return float64(s.RowsWaiting) }),
	gauge("rows_in_flight", "Rows of batches that are sent, or wait to be sent again.",
		func(s windrow.Statistics) float64 { return float64(s.RowsInFlight) }),
	gauge("batches_in_flight", "Batches that are sent, or wait to be sent again.",
		func(s windrow.Statistics) float64 { return float64(s.BatchesInFlight) }),
	gauge("held_bytes", "Bytes that count for the writer's limit.", func(s windrow.Statistics) float64 { return float64(s.BytesHeld) }),
}

// Collector collects from the writers that were added to it. It is a prometheus.Collector.
type Collector struct {
	mu      sync.Mutex
	sources map[string]Source
}

// NewCollector gives a collector of no writers.
func NewCollector() *Collector { return &Collector{sources: map[string]Source{}} }

// Add shows a writer under a name, instead of the one that had it.
func (c *Collector) Add(name string, writer Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources[name] = writer
}

// Remove takes a writer out.
func (c *Collector) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sources, name)
}

// Describe is called by Prometheus's registry.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, metric := range metrics {
		descriptions <- metric.description
	}
}

// Collect is called by Prometheus's registry.
func (c *Collector) Collect(collected chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, source := range c.sources {
		statistics := source.Statistics()
		for _, metric := range metrics {
			collected <- prometheus.MustNewConstMetric(metric.description, metric.kind, metric.value(statistics), name)
		}
	}
}
