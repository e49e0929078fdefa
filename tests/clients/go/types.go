package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// kind is a type that the driver reads and writes, and some values of it as ClickHouse's expressions.
type kind struct {
	table, name string
	values      []string
}

var kinds = []kind{
	{"uint8", "UInt8", []string{"0", "255"}},
	{"int64", "Int64", []string{"-9223372036854775808", "9223372036854775807"}},
	{"int128", "Int128", []string{"'-170141183460469231731687303715884105728'", "7"}},
	{"uint256", "UInt256", []string{"0", "'115792089237316195423570985008687907853269984665640564039457584007913129639935'"}},
	{"float32", "Float32", []string{"1.5", "-inf", "nan"}},
	{"float64", "Float64", []string{"5e-324", "-0."}},
	{"bfloat16", "BFloat16", []string{"1.5", "-2"}},
	{"bool", "Bool", []string{"true", "false"}},
	{"string", "String", []string{"''", "'ünï'", "unhex('00ff')", "repeat('long', 1000)"}},
	{"fixed_string", "FixedString(5)", []string{"'abcde'", "'vwxyz'"}},
	{"date", "Date", []string{"'1970-01-01'", "'2149-06-06'"}},
	{"date32", "Date32", []string{"'1900-01-01'", "'2299-12-31'"}},
	{"datetime", "DateTime('Asia/Tokyo')", []string{"'1970-01-02 00:00:00'", "'2106-02-07 00:00:00'"}},
	{"datetime64", "DateTime64(9, 'UTC')", []string{"'1970-01-01 00:00:00.000000001'", "'2024-02-29 12:34:56.123456789'"}},
	{"time", "Time", []string{"'00:00:00'", "'12:34:56'"}},
	{"time64", "Time64(6)", []string{"'00:00:00.000001'", "'12:34:56.789012'"}},
	{"decimal32", "Decimal(9, 4)", []string{"'-99999.9999'", "0"}},
	{"decimal128", "Decimal(38, 10)", []string{"'-1.0000000001'", "'12345678901234567890.0123456789'"}},
	{"decimal256", "Decimal(76, 20)", []string{"'-1.5'", "'1234567890123456789012345678901234567890.0123456789'"}},
	{"uuid", "UUID", []string{"'00000000-0000-0000-0000-000000000000'", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'"}},
	{"ipv4", "IPv4", []string{"'0.0.0.0'", "'255.255.255.255'"}},
	{"ipv6", "IPv6", []string{"'::'", "'2001:db8::1'"}},
	{"enum8", "Enum8('a' = -128, 'it''s' = 127)", []string{"'a'", "'it''s'"}},
	{"enum16", "Enum16('a' = -32768, 'b' = 32767)", []string{"'a'", "'b'"}},
	{"nullable", "Nullable(String)", []string{"NULL", "''", "'x'"}},
	{"words", "LowCardinality(String)", []string{"'a'", "'b'", "'a'", "''"}},
	{"words_or_null", "LowCardinality(Nullable(String))", []string{"'a'", "NULL", "''", "'a'"}},
	{"array", "Array(Array(Nullable(Int32)))", []string{"[]", "[[]]", "[[1, NULL], [], [3]]"}},
	{"array_of_words", "Array(LowCardinality(String))", []string{"[]", "['a', 'b']", "['a']"}},
	// One key each: Go's maps have no order.
	{"map", "Map(String, Array(UInt8))", []string{"map()", "map('a', [1, 2])", "map('', [])"}},
	{"map_of_words", "Map(LowCardinality(String), String)", []string{"map()", "map('a', 'b')"}},
	{"map_of_maps", "Map(String, Map(LowCardinality(String), UInt64))", []string{"map()", "map('a', map('b', 1))"}},
	{"tuple", "Tuple(Int32, String, Array(UInt8))", []string{"(1, 'a', [1])", "(0, '', [])"}},
	{"named_tuple", "Tuple(a Int32, b Nullable(String))", []string{"(1, 'a')", "(0, NULL)"}},
	{"array_of_tuples", "Array(Tuple(a LowCardinality(String), b Nullable(Int8)))", []string{"[]", "[('a', 1), ('b', NULL)]"}},
	{"point", "Point", []string{"(1.5, -2)"}},
	{"polygon", "Polygon", []string{"[[(0, 0), (1, 0), (1, 1)]]"}},
	{"simple_aggregate", "SimpleAggregateFunction(max, UInt64)", []string{"7", "8"}},
	{"variant", "Variant(Array(UInt64), String, UInt64)", []string{"toUInt64(1)", "'x'", "[toUInt64(1)]", "NULL"}},
	{"dynamic", "Dynamic", []string{"'x'", "toInt64(1)", "NULL"}},
	{"json", "JSON", []string{`'{"a": 1, "b": {"c": "x"}}'`, "'{}'"}},
}

// typeChecks inserts into one table what the driver has read from another.
func typeChecks(ctx context.Context, conn driver.Conn) {
	for _, kind := range kinds {
		sent[kind.table]++
		run("insert "+kind.name, func() error {
			if err := fill(ctx, conn, kind); err != nil {
				return err
			}
			if err := copyRows(ctx, conn, kind.table); err != nil {
				return err
			}
			var got, expected string
			text := "SELECT toString(groupArray((id, toString(v)))) FROM (SELECT * FROM %s ORDER BY id)"
			if err := conn.QueryRow(ctx, fmt.Sprintf(text, kind.table)).Scan(&got); err != nil {
				return err
			}
			if err := conn.QueryRow(ctx, fmt.Sprintf(text, "from_"+kind.table)).Scan(&expected); err != nil {
				return err
			}
			return equal(got, expected)
		})
	}
}

func fill(ctx context.Context, conn driver.Conn, kind kind) error {
	rows := make([]string, len(kind.values))
	for n, value := range kind.values {
		rows[n] = fmt.Sprintf("SELECT toUInt64(%d) AS id, CAST(%s AS %s) AS v", n, value, kind.name)
	}
	columns := fmt.Sprintf("(id UInt64, v %s) ENGINE = MergeTree ORDER BY id", kind.name)
	create := fmt.Sprintf("CREATE TABLE from_%s %s AS %s", kind.table, columns, strings.Join(rows, " UNION ALL "))
	if err := conn.Exec(ctx, create); err != nil {
		return err
	}
	return conn.Exec(ctx, fmt.Sprintf("CREATE TABLE %s %s", kind.table, columns))
}

func copyRows(ctx context.Context, conn driver.Conn, table string) error {
	rows, err := conn.Query(ctx, "SELECT * FROM from_"+table+" ORDER BY id")
	if err != nil {
		return err
	}
	defer rows.Close()
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+table)
	if err != nil {
		return err
	}
	defer batch.Close()
	for rows.Next() {
		var id uint64
		value := reflect.New(rows.ColumnTypes()[1].ScanType())
		if err := rows.Scan(&id, value.Interface()); err != nil {
			return err
		}
		if err := batch.Append(id, value.Elem().Interface()); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return batch.Send()
}
