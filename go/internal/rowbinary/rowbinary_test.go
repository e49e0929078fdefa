package rowbinary

import (
	"math"
	"math/big"
	"testing"
	"time"
)

func TestTypesThatAreNoneAreErrors(t *testing.T) {
	for _, name := range []string{
		"", "Int7", "Array", "Array()", "Array(Int8", "Array(Int8))", "Array(Int8, Int8)", "Map(String)", "FixedString(0)",
		"FixedString(x)", "DateTime64(10)", "Decimal(77, 1)", "Decimal(5, 6)", "Decimal(5)", "Enum8('a')", "Enum8('a' = 200)",
		"Enum8(a = 1)", "Tuple()", "Tuple(a Int8, String)", "Tuple(a b c)", "Nullable(Nothing)", "JSON", "Dynamic",
		"AggregateFunction(sum, Int8)", "SimpleAggregateFunction(sum)",
	} {
		if parsed, err := Parse(name); err == nil {
			t.Errorf("%s: %+v", name, parsed)
		}
	}
}

func TestTypesAreTakenApart(t *testing.T) {
	parsed, err := Parse("Tuple(`a b` Array(Nullable(String)), c Enum8('x,)' = 1, 'it\\'s' = -2))")
	if err != nil || parsed.Names[0] != "a b" || parsed.Elements[1].Values["x,)"] != 1 || parsed.Elements[1].Values["it's"] != -2 {
		t.Fatal(parsed, err)
	}
}

func TestValuesOutOfRangeAreErrors(t *testing.T) {
	for _, example := range []struct {
		typeName string
		value    any
	}{
		{"Int8", 128}, {"Int8", -129}, {"UInt8", -1}, {"UInt8", 256}, {"UInt64", -1}, {"Int64", uint64(math.MaxUint64)},
		{"UInt128", -1}, {"Int128", new(big.Int).Lsh(big.NewInt(1), 127)}, {"UInt256", new(big.Int).Lsh(big.NewInt(1), 256)},
		{"Date", time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)}, {"Date", time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"DateTime", time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)}, {"DateTime64(9)", time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"FixedString(2)", "abc"}, {"UUID", "x"}, {"UUID", []byte{1}}, {"IPv4", "::1"}, {"IPv6", "x"}, {"Enum8('a' = 1)", "b"},
		{"Decimal(9, 2)", "1.001"}, {"Decimal(9, 2)", "x"}, {"Decimal(9, 2)", "1e3"}, {"String", 5}, {"Int8", "5"}, {"Bool", 1},
		{"Int8", nil}, {"Int8", (*int8)(nil)}, {"Array(Int8)", 5}, {"Tuple(Int8, Int8)", []any{1}}, {"Map(String, Int8)", []any{1}},
	} {
		parsed, err := Parse(example.typeName)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := AppendValue(nil, parsed, example.value); err == nil {
			t.Errorf("%s takes %v as %x", example.typeName, example.value, out)
		}
	}
}

func TestLimitsOfBigNumbersFit(t *testing.T) {
	smallest := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 127))
	parsed, _ := Parse("Int128")
	out, err := AppendValue(nil, parsed, smallest)
	if err != nil || len(out) != 16 || out[15] != 0x80 {
		t.Fatal(out, err)
	}
}

func TestStructsWithoutAFieldForAColumnAreErrors(t *testing.T) {
	type row struct {
		A  int8   `ch:"a"`
		B  string `ch:"-"`
		c  int8
		Of chan int `ch:"of"`
	}
	_ = row{c: 1}.c
	for _, column := range []string{"B", "c", "x", "of"} {
		if _, err := NewRowEncoder[row]([]string{column}, []string{"Int8"}); err == nil {
			t.Error(column)
		}
	}
	if _, err := NewRowEncoder[int]([]string{"a"}, []string{"Int8"}); err == nil {
		t.Error("a number is no row")
	}
	if _, err := NewRowEncoder[row]([]string{"a"}, []string{"Int8"}); err != nil {
		t.Error(err)
	}
}

// FuzzParse reads whatever a server says of its types, and encodes values for what it could read.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"Map(String, Array(Nullable(Int8)))", "Enum8('a' = 1)", "Tuple(a Int8, `b` Decimal(9, 2))", "Nested(a Int8)"} {
		f.Add(name, int64(5), "x")
	}
	f.Fuzz(func(_ *testing.T, name string, number int64, text string) {
		parsed, err := Parse(name)
		if err != nil {
			return
		}
		for _, value := range []any{number, text, nil, []any{number, text}, map[string]any{text: number}, time.Unix(number, 0)} {
			_, _ = AppendValue(nil, parsed, value)
		}
	})
}
