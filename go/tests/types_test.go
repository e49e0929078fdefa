package tests

import (
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go"

	windrow "windrow.dev/go"
	"windrow.dev/go/native"
)

// nativeStore speaks ClickHouse's native protocol.
func nativeStore(t testing.TB) windrow.Store {
	t.Helper()
	store := native.New(ch.Options{
		Address:  environment(t, "CLICKHOUSE_HOST") + ":" + environment(t, "WINDROW_TEST_NATIVE_PORT"),
		User:     environment(t, "CLICKHOUSE_USER"),
		Password: environment(t, "CLICKHOUSE_PASSWORD"),
		Database: environment(t, "CLICKHOUSE_DATABASE"),
	})
	t.Cleanup(store.Close)
	return store
}

// overBoth runs a test over HTTP and over the native protocol.
func overBoth(t *testing.T, test func(t *testing.T, store windrow.Store)) {
	t.Run("HTTP", func(t *testing.T) { test(t, httpStore(t)) })
	t.Run("Native", func(t *testing.T) { test(t, nativeStore(t)) })
}

type point struct {
	X, Y float64
}

type named struct {
	Name  string `ch:"name"`
	Count uint32 `ch:"count"`
}

// text is something that writes itself, as types for decimals do.
type text string

func (t text) String() string { return string(t) }

func pointerTo[T any](value T) *T { return &value }

var (
	moment = time.Date(2024, 2, 29, 12, 34, 56, 789_123_456, time.UTC)
	large  = new(big.Int).Lsh(big.NewInt(-3), 100)
	uuid   = [16]byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x4d, 0xef, 0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
)

const uuidText = "01234567-89ab-4def-8123-456789abcdef"

// values are a type, a value of Go's, and what ClickHouse says of it as text.
var values = []struct {
	typeName string
	value    any
	wanted   string
}{
	{"Int8", int8(-128), "-128"},
	{"Int16", int16(-3), "-3"},
	{"Int32", int32(-4), "-4"},
	{"Int64", int64(math.MinInt64), "-9223372036854775808"},
	{"UInt8", uint8(255), "255"},
	{"UInt16", uint16(3), "3"},
	{"UInt32", uint32(4), "4"},
	{"UInt64", uint64(math.MaxUint64), "18446744073709551615"},
	{"Int64", 7, "7"},
	{"UInt8", 7, "7"},
	{"Int8", uint64(7), "7"},
	{"UInt64", uint8(7), "7"},
	{"Float64", 7, "7"},
	{"Int128", large, large.String()},
	{"Int256", large, large.String()},
	{"UInt128", new(big.Int).Neg(large), new(big.Int).Neg(large).String()},
	{"UInt256", uint64(5), "5"},
	{"Int128", -5, "-5"},
	{"Float32", float32(1.5), "1.5"},
	{"Float64", 2.25, "2.25"},
	{"Float32", 2.5, "2.5"},
	{"Bool", true, "true"},
	{"UInt8", true, "1"},
	{"String", "a\x00b", "a\\0b"},
	{"String", []byte("bytes"), "bytes"},
	{"FixedString(4)", "abc", "abc\\0"},
	{"FixedString(3)", [3]byte{'x', 'y', 'z'}, "xyz"},
	{"UUID", uuid, uuidText},
	{"UUID", uuidText, uuidText},
	{"Date", moment, "2024-02-29"},
	{"Date32", time.Date(1925, 1, 2, 0, 0, 0, 0, time.UTC), "1925-01-02"},
	{"Date", uint16(1), "1970-01-02"},
	{"DateTime('UTC')", moment, "2024-02-29 12:34:56"},
	{"DateTime64(3, 'UTC')", moment, "2024-02-29 12:34:56.789"},
	{"DateTime64(9, 'UTC')", moment, "2024-02-29 12:34:56.789123456"},
	{"DateTime64(1, 'UTC')", time.Date(1960, 1, 1, 0, 0, 0, 500_000_000, time.UTC), "1960-01-01 00:00:00.5"},
	{"Enum8('a' = 1, 'it\\'s' = -2)", "it's", "it\\'s"},
	{"Enum16('a' = 1000)", int16(1000), "a"},
	{"Decimal(9, 2)", "-12.30", "-12.3"},
	{"Decimal(18, 4)", text("7.5"), "7.5"},
	{"Decimal(38, 1)", 5, "5"},
	{"Decimal(76, 3)", "0.001", "0.001"},
	{"IPv4", netip.MustParseAddr("1.2.3.4"), "1.2.3.4"},
	{"IPv4", net.ParseIP("1.2.3.4"), "1.2.3.4"},
	{"IPv4", "1.2.3.4", "1.2.3.4"},
	{"IPv6", netip.MustParseAddr("2001:db8::1"), "2001:db8::1"},
	{"IPv6", "::ffff:1.2.3.4", "::ffff:1.2.3.4"},
	{"Nullable(Int32)", (*int32)(nil), "\\N"},
	{"Nullable(Int32)", pointerTo(int32(5)), "5"},
	{"Nullable(String)", nil, "\\N"},
	{"Nullable(String)", "x", "x"},
	{"LowCardinality(String)", "low", "low"},
	{"LowCardinality(Nullable(String))", nil, "\\N"},
	{"LowCardinality(Nullable(String))", "x", "x"},
	{"LowCardinality(FixedString(2))", "ab", "ab"},
	{"Array(UInt8)", []uint8{1, 2}, "[1,2]"},
	{"Array(Array(String))", [][]string{{"a"}, {}}, "[['a'],[]]"},
	{"Array(Nullable(Int8))", []*int8{nil, pointerTo(int8(1))}, "[NULL,1]"},
	{"Array(LowCardinality(String))", []string{"a", "b", "a"}, "['a','b','a']"},
	{"Array(Int64)", []any{1, int8(2)}, "[1,2]"},
	{"Tuple(Int8, String)", []any{1, "x"}, "(1,'x')"},
	{"Tuple(count UInt32, name String)", named{"n", 3}, "(3,'n')"},
	{"Point", point{1, 2.5}, "(1,2.5)"},
	{"Map(String, UInt64)", map[string]uint64{"k": 1}, "{'k':1}"},
	{"Map(LowCardinality(String), Array(Int8))", map[string][]int8{"k": {1}}, "{'k':[1]}"},
	{"SimpleAggregateFunction(sum, UInt64)", uint64(9), "9"},
	{"Ring", []point{{1, 2}}, "[(1,2)]"},
}

func TestTypes(t *testing.T) {
	var columns []string
	var row windrow.Row
	var wanted []string
	for index, value := range values {
		columns = append(columns, fmt.Sprintf("c%d %s", index, value.typeName))
		row = append(row, value.value)
		wanted = append(wanted, value.wanted)
	}
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, strings.Join(columns, ", "))
		writer := open[windrow.Row](t, store, name, windrow.Options{})
		done(t, writer.WriteRows([]windrow.Row{row, row}))
		done(t, writer.Close(t.Context()))
		for failed := range writer.Errors() {
			t.Fatal(failed)
		}
		line := strings.Join(wanted, "\t")
		equal(t, sql(t, "SELECT * FROM "+name), line+"\n"+line)
	})
}

// every has a field of each kind that a struct is encoded by in a way of its own.
type every struct {
	Small  int8              `ch:"small"`
	Wide   int               `ch:"wide"`
	Text   string            `ch:"text"`
	Bytes  []byte            `ch:"bytes"`
	ID     [16]byte          `ch:"id"`
	Maybe  *string           `ch:"maybe"`
	Given  *uint32           `ch:"given"`
	Low    string            `ch:"low"`
	List   []int64           `ch:"list"`
	Pairs  []named           `ch:"pairs"`
	Map    map[string]uint64 `ch:"map"`
	At     time.Time         `ch:"at"`
	IP     netip.Addr        `ch:"ip"`
	Enum   string            `ch:"enum"`
	Price  text              `ch:"price"`
	Any    any               `ch:"any"`
	Hidden int               `ch:"-"`
	inner
}

type inner struct {
	Flag bool `ch:"flag"`
}

func TestStructsOfManyTypes(t *testing.T) {
	overBoth(t, func(t *testing.T, store windrow.Store) {
		name := table(t, "small Int8, wide Int32, text String, bytes String, id UUID, maybe Nullable(String), given UInt32, "+
			"low LowCardinality(String), list Array(Int64), pairs Array(Tuple(name String, count UInt32)), map Map(String, UInt64), "+
			"at DateTime64(6, 'UTC'), ip IPv6, enum Enum8('a' = 1), price Decimal(10, 2), any Nullable(Int64), flag Bool")
		writer := open[every](t, store, name, windrow.Options{})
		row := every{
			Small: 1, Wide: -2, Text: "t", Bytes: []byte("b"), ID: uuid, Given: pointerTo(uint32(4)), Low: "l", List: []int64{5},
			Pairs: []named{{"n", 6}}, Map: map[string]uint64{"k": 7}, At: moment, IP: netip.MustParseAddr("::1"), Enum: "a",
			Price: "8.5", Any: 9, inner: inner{Flag: true},
		}
		done(t, writer.Write(row))
		row.Maybe, row.Any = pointerTo("m"), nil
		done(t, writer.Write(row))
		for _, wrong := range []func(*every){
			func(row *every) { row.Wide = 1 << 40 }, func(row *every) { row.Given = nil }, func(row *every) { row.Enum = "x" },
			func(row *every) { row.Price = "1.234" }, func(row *every) { row.At = time.Date(500_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		} {
			bad := row
			wrong(&bad)
			if err := writer.Write(bad); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
		done(t, writer.Close(t.Context()))
		wanted := "1\t-2\tt\tb\t" + uuidText + "\t%s\t4\tl\t[5]\t[('n',6)]\t{'k':7}\t" +
			"2024-02-29 12:34:56.789123\t::1\ta\t8.5\t%s\ttrue"
		found := sql(t, "SELECT * FROM "+name+" ORDER BY maybe NULLS FIRST")
		equal(t, found, fmt.Sprintf(wanted, "\\N", "9")+"\n"+fmt.Sprintf(wanted, "m", "\\N"))
	})
}
