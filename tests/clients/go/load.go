package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// loadPlan is what the benchmark asks for: goroutines that each insert one row at a time, as a batch of its own.
type loadPlan struct {
	Goroutines int               `json:"goroutines"`
	Seconds    float64           `json:"seconds"`
	Table      string            `json:"table"`
	Settings   map[string]string `json:"settings"`
}

type loadReport struct {
	Acknowledged int     `json:"acknowledged"`
	Seconds      float64 `json:"seconds"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	FirstError   string  `json:"first_error"`
}

// load prints its report instead of the other programs' one.
func load(ctx context.Context, text string) {
	var plan loadPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		panic(err)
	}
	chosen := options(nil)
	chosen.MaxOpenConns, chosen.MaxIdleConns = plan.Goroutines, plan.Goroutines
	chosen.DialTimeout = 30 * time.Second
	chosen.Settings = clickhouse.Settings{}
	for name, value := range plan.Settings {
		chosen.Settings[name] = value
	}
	conn, err := clickhouse.Open(chosen)
	if err != nil {
		panic(err)
	}
	var (
		report    loadReport
		latencies []time.Duration
		lock      sync.Mutex
		group     sync.WaitGroup
	)
	began := time.Now()
	end := began.Add(time.Duration(plan.Seconds * float64(time.Second)))
	for number := range plan.Goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			var own []time.Duration
			var failed error
			for seq := uint64(0); failed == nil && time.Now().Before(end); seq++ {
				started := time.Now()
				if failed = insertRow(ctx, conn, plan.Table, uint32(number), seq); failed == nil {
					own = append(own, time.Since(started))
				}
			}
			lock.Lock()
			defer lock.Unlock()
			latencies = append(latencies, own...)
			if failed != nil && report.FirstError == "" {
				report.FirstError = failed.Error()
			}
		}()
	}
	group.Wait()
	report.Seconds = time.Since(began).Seconds()
	report.Acknowledged = len(latencies)
	slices.Sort(latencies)
	if len(latencies) > 0 {
		report.P50 = latencies[len(latencies)/2].Seconds() * 1000
		report.P99 = latencies[len(latencies)*99/100].Seconds() * 1000
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		report.CPUSeconds = time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	}
	line, _ := json.Marshal(report)
	fmt.Println(string(line))
}

func insertRow(ctx context.Context, conn clickhouse.Conn, table string, number uint32, seq uint64) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+table)
	if err != nil {
		return err
	}
	// The row that `bench/base/check.py` describes.
	value := (uint64(number)*7919 + seq*104_729) % 1_000_000
	err = batch.Append(number, seq, time.Unix(1_700_000_000, 0), "example.com", "Oslo", uint32(value))
	if err != nil {
		return err
	}
	return batch.Send()
}
