package buffertest_test

import (
	"testing"

	windrow "windrow.dev/go"
	"windrow.dev/go/buffertest"
)

type memory struct{}

func (memory) Opener() windrow.Opener { return windrow.Memory() }

func (m memory) Killed(*testing.T) buffertest.Place { return m }

func TestMemory(t *testing.T) {
	buffertest.Run(t, func(*testing.T) buffertest.Place { return memory{} })
}

func TestBackoff(t *testing.T) { buffertest.RunRetryPolicy(t, windrow.Backoff{}) }
