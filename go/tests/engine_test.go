// Package tests runs the writer against a real ClickHouse, a real Windrow and a real Redis, whose addresses
// are in the environment: tests/go starts them.
package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	windrow "windrow.dev/go"
)

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environment(t testing.TB, name string) string {
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not in the environment: these tests are run by tests/go/test_go_writer.py", name)
	}
	return value
}

// address is the server's, with account and database.
func address(t testing.TB) string {
	account := url.UserPassword(environment(t, "CLICKHOUSE_USER"), environment(t, "CLICKHOUSE_PASSWORD"))
	host := environment(t, "CLICKHOUSE_HOST") + ":" + environment(t, "CLICKHOUSE_PORT")
	return (&url.URL{Scheme: "http", User: account, Host: host, Path: environment(t, "CLICKHOUSE_DATABASE")}).String()
}

// sql runs a statement over a connection of its own.
func sql(t testing.TB, statement string) string {
	t.Helper()
	parsed, err := url.Parse(address(t))
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"database": {strings.Trim(parsed.Path, "/")}}
	parsed.RawQuery, parsed.Path = query.Encode(), "/"
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post(parsed.String(), "text/plain", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %s", statement, err, answer)
	}
	return strings.TrimSpace(string(answer))
}

// table makes a table of the test's own, with a window of deduplication.
func table(t testing.TB, columns string) string {
	t.Helper()
	name := "go_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name())
	sql(t, "DROP TABLE IF EXISTS "+name)
	sql(t, fmt.Sprintf("CREATE TABLE %s (%s) ENGINE = MergeTree ORDER BY tuple() "+
		"SETTINGS non_replicated_deduplication_window = 10000", name, columns))
	t.Cleanup(func() { sql(t, "DROP TABLE "+name) })
	return name
}

func httpStore(t testing.TB) *windrow.HTTPStore {
	t.Helper()
	store, err := windrow.HTTP(address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func open[T any](t testing.TB, store windrow.Store, table string, options windrow.Options) *windrow.Writer[T] {
	t.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	writer, err := windrow.Open[T](t.Context(), store, table, options)
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

func done(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("found  %v\nwanted %v", found, wanted)
	}
}

type event struct {
	ID   uint64    `ch:"id"`
	What string    `ch:"what"`
	At   time.Time `ch:"at"`
}

func TestStructsAndLists(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "id UInt64, what String, at DateTime64(3, 'UTC') DEFAULT now64(3), double UInt64 MATERIALIZED 2 * id")
		structs := open[event](t, store, name, windrow.Options{})
		done(t, structs.Write(event{1, "started", time.UnixMilli(1_700_000_000_123)}))
		lists := open[windrow.Row](t, store, name, windrow.Options{Columns: []string{"what", "id"}})
		done(t, lists.WriteRows([]windrow.Row{{"ended", 2}, {"äöü", uint8(3)}}))
		done(t, structs.Close(t.Context()))
		done(t, lists.Close(t.Context()))
		equal(t, sql(t, "SELECT id, what, double FROM "+name+" ORDER BY id"), "1\tstarted\t2\n2\tended\t4\n3\täöü\t6")
		equal(t, sql(t, "SELECT at FROM "+name+" WHERE id = 1"), "2023-11-14 22:13:20.123")
	})
}

func TestSeveralTablesOverOneStore(t *testing.T) {
	first := table(t, "n UInt64")
	second := first + "_2"
	sql(t, "CREATE TABLE "+second+" (n UInt64) ENGINE = Memory")
	defer sql(t, "DROP TABLE "+second)
	store := httpStore(t)
	writers := []*windrow.Writer[windrow.Row]{
		open[windrow.Row](t, store, first, windrow.Options{}), open[windrow.Row](t, store, second, windrow.Options{}),
	}
	for n := range 100 {
		done(t, writers[n%2].Write(windrow.Row{n}))
	}
	for _, writer := range writers {
		done(t, writer.Close(t.Context()))
	}
	equal(t, sql(t, "SELECT (SELECT sum(n) FROM "+first+"), (SELECT count() FROM "+second+")"), "2450\t50")
}

func TestGuiltyRowsComeBackAndOthersAreStored(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "n Int64, CONSTRAINT positive CHECK n > 0")
		writer := open[windrow.Row](t, store, name, windrow.Options{})
		for _, n := range []int{1, 2, -3, 4, 0, 6} {
			done(t, writer.Write(windrow.Row{n}))
		}
		done(t, writer.Close(t.Context()))
		equal(t, sql(t, "SELECT arraySort(groupArray(n)) FROM "+name), "[1,2,4,6]")
		var back uint64
		for failed := range writer.Errors() {
			var exception *windrow.Exception
			if !errors.As(failed, &exception) || exception.Code != 469 || failed.Reason != windrow.ReasonValues {
				t.Error(failed)
			}
			back += failed.RowCount
		}
		equal(t, back, 2)
	})
}

func TestARepeatUnderTheSameIDIsStoredOnce(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "n UInt64")
		described, err := store.Describe(t.Context(), name, nil)
		done(t, err)
		equal(t, described.Deduplicates, true)
		rows := windrow.Rows{Bytes: make([]byte, 24), Lengths: []uint32{8, 8, 8}}
		batch := windrow.Batch{ID: windrow.NewBatchID(), Destination: &described.Destination, Rows: rows}
		for range 3 {
			done(t, store.Insert(t.Context(), batch))
		}
		equal(t, sql(t, "SELECT count() FROM "+name), "3")
	})
}

func TestATableThatIsGoneGivesRowsBack(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "n UInt64")
		writer := open[windrow.Row](t, store, name, windrow.Options{})
		sql(t, "RENAME TABLE "+name+" TO "+name+"_away")
		defer sql(t, "RENAME TABLE "+name+"_away TO "+name)
		done(t, writer.Write(windrow.Row{1}))
		done(t, writer.Flush(t.Context()))
		failed := <-writer.Errors()
		equal(t, failed.Reason, windrow.ReasonRefused)
		done(t, writer.Close(t.Context()))
	})
}

func TestATableThatWasAlteredRefusesWhatItCannotRead(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "n UInt64, s String")
		writer := open[windrow.Row](t, store, name, windrow.Options{})
		sql(t, "ALTER TABLE "+name+" MODIFY COLUMN s UInt64 SETTINGS mutations_sync = 2")
		done(t, writer.Write(windrow.Row{1, "no number"}))
		done(t, writer.Close(t.Context()))
		if failed := <-writer.Errors(); failed == nil || failed.RowCount != 1 {
			t.Fatal(failed)
		}
	})
}

// What was encoded for the types that a table had is never cast: the rows come back.
func TestATableThatHasOtherTypesRefusesTheRows(t *testing.T) {
	cases := []struct {
		was, is string
		value   any
	}{
		{"Int32", "Float64", 1},
		{"Bool", "Float32", true},
		{"Decimal(18, 3)", "Decimal(18, 6)", "3.141"},
		{"DateTime('UTC')", "DateTime64(3, 'UTC')", moment},
		{"Date", "DateTime", moment},
		{"Nullable(Int32)", "Int32", nil},
		{"Array(Float32)", "Array(Float64)", []float32{0.1}},
		{"Enum8('a' = 1, 'b' = 2)", "Enum8('b' = 1, 'a' = 2)", "a"},
	}
	overBoth(t, func(t *testing.T, store windrow.Store) {
		for _, change := range cases {
			t.Run(change.was, func(t *testing.T) {
				name := table(t, "v "+change.was)
				writer := open[windrow.Row](t, store, name, windrow.Options{})
				sql(t, "CREATE OR REPLACE TABLE "+name+" (v "+change.is+") ENGINE = Memory")
				done(t, writer.Write(windrow.Row{change.value}))
				done(t, writer.Close(t.Context()))
				if failed := <-writer.Errors(); failed == nil || failed.Reason != windrow.ReasonRefused {
					t.Fatal(failed)
				}
				equal(t, sql(t, "SELECT count() FROM "+name), "0")
			})
		}
	})
}

func TestWrongNamesAreErrorsOfOpen(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "n UInt64")
		for _, example := range []struct{ table, column, word string }{
			{"nowhere_at_all", "", "no table"}, {name, "x", "no column x"},
		} {
			options := windrow.Options{}
			if example.column != "" {
				options.Columns = []string{example.column}
			}
			if _, err := windrow.Open[windrow.Row](t.Context(), store, example.table, options); err == nil ||
				!strings.Contains(err.Error(), example.word) {
				t.Error(err)
			}
		}
		type wrong struct {
			N map[string]int `ch:"n"`
		}
		if _, err := windrow.Open[wrong](t.Context(), store, name, windrow.Options{}); err == nil {
			t.Error("a map is no number")
		}
	})
}

func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	store := httpStore(t)
	name := table(t, "n UInt64")
	writer := open[windrow.Row](t, store, name, windrow.Options{Retry: windrow.Backoff{First: time.Millisecond}})
	transport := store.Client.Transport
	failures := 3
	store.Client.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if failures--; failures >= 0 {
			// The batch is stored, and the answer lost.
			response, err := transport.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, errors.New("connection reset")
		}
		return transport.RoundTrip(request)
	})
	defer func() { store.Client.Transport = transport }()
	done(t, writer.WriteBlocking(t.Context(), windrow.Row{1}, windrow.Row{2}))
	done(t, writer.Close(t.Context()))
	equal(t, sql(t, "SELECT count() FROM "+name), "2")
	equal(t, writer.Statistics().Retries, 3)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func TestACloseThatIsCutShortSaysSo(t *testing.T) {
	name := table(t, "n UInt64")
	writer := open[windrow.Row](t, httpStore(t), name, windrow.Options{})
	done(t, writer.Write(windrow.Row{1}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := writer.Close(ctx)
	var unfinished *windrow.CloseError
	if err != nil && (!errors.As(err, &unfinished) || unfinished.RowsHandedOver != 1) {
		t.Fatal(err)
	}
}
