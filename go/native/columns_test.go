package native

import (
	"testing"

	"github.com/ClickHouse/ch-go/proto"

	windrow "windrow.dev/go"
)

var destination = &windrow.Destination{
	Database: "d", Table: "t",
	Columns: []string{"a", "b", "c", "d"},
	Types: []string{
		"UInt16", "Array(Nullable(String))", "LowCardinality(Nullable(String))", "Map(LowCardinality(String), Tuple(Int8, Float64))",
	},
}

// sound is two rows: (513, ['x', NULL], 'y', {'k': (1, 0)}) and (1, [], NULL, {}).
func sound() windrow.Rows {
	first := "\x01\x02" + "\x02\x00\x01x\x01" + "\x00\x01y" + "\x01\x01k\x01\x00\x00\x00\x00\x00\x00\x00\x00"
	second := "\x01\x00" + "\x00" + "\x01" + "\x00"
	return windrow.Rows{Bytes: []byte(first + second), Lengths: []uint32{uint32(len(first)), uint32(len(second))}}
}

func TestRowsAreReadAndEveryTruncationIsAnError(t *testing.T) {
	rows := sound()
	columns, err := columnsOf(destination, rows)
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		"\x01\x02\x01\x00",
		"\x02\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x00\x01" + "\x01x\x00",
		"\x00\x06\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x00\x01y" +
			"\x02\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00",
	}
	for index, bytes := range wanted {
		var out proto.Buffer
		columns[index].EncodeColumn(&out)
		if string(out.Buf) != bytes {
			t.Errorf("column %d: %q", index, out.Buf)
		}
	}
	for end := range rows.Bytes {
		if _, err := columnsOf(destination, windrow.Rows{Bytes: rows.Bytes[:end], Lengths: rows.Lengths}); err == nil {
			t.Error(end)
		}
	}
}

func FuzzColumns(f *testing.F) {
	f.Add(sound().Bytes, uint8(2))
	f.Fuzz(func(_ *testing.T, bytes []byte, count uint8) {
		columns, err := columnsOf(destination, windrow.Rows{Bytes: bytes, Lengths: make([]uint32, count)})
		if err != nil {
			return
		}
		for _, column := range columns {
			var out proto.Buffer
			column.EncodeState(&out)
			column.EncodeColumn(&out)
		}
	})
}
