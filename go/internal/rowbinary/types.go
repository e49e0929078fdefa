// Package rowbinary encodes Go's values in ClickHouse's format RowBinary.
package rowbinary

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind says how a type's values stand in RowBinary.
type Kind int

// The kinds of types.
const (
	Int Kind = iota + 1 // Type.Size bytes
	UInt
	Float
	Bool
	String
	FixedString
	UUID
	Date
	Date32
	DateTime
	DateTime64
	Enum
	Decimal
	IPv4
	IPv6
	Nullable
	LowCardinality
	Array
	Tuple
	Map
)

// Type is a type of ClickHouse's, taken apart.
type Type struct {
	Kind Kind
	// Name is ClickHouse's.
	Name string
	// Size is how many bytes a value has, if all have the same number.
	Size int
	// Scale is how many digits stand behind the point of a Decimal or a DateTime64.
	Scale int
	// Elements are the types inside, with their names in a Tuple that has such.
	Elements []*Type
	Names    []string
	// Values are an Enum's.
	Values map[string]int64
}

var simple = map[string]Type{
	"Int8": {Kind: Int, Size: 1}, "Int16": {Kind: Int, Size: 2}, "Int32": {Kind: Int, Size: 4}, "Int64": {Kind: Int, Size: 8},
	"Int128": {Kind: Int, Size: 16}, "Int256": {Kind: Int, Size: 32},
	"UInt8": {Kind: UInt, Size: 1}, "UInt16": {Kind: UInt, Size: 2}, "UInt32": {Kind: UInt, Size: 4},
	"UInt64": {Kind: UInt, Size: 8}, "UInt128": {Kind: UInt, Size: 16}, "UInt256": {Kind: UInt, Size: 32},
	"Float32": {Kind: Float, Size: 4}, "Float64": {Kind: Float, Size: 8}, "Bool": {Kind: Bool, Size: 1},
	"String": {Kind: String}, "UUID": {Kind: UUID, Size: 16}, "IPv4": {Kind: IPv4, Size: 4}, "IPv6": {Kind: IPv6, Size: 16},
	"Date": {Kind: Date, Size: 2}, "Date32": {Kind: Date32, Size: 4}, "DateTime": {Kind: DateTime, Size: 4},
}

// aliases are types that have a name of their own and are made of others.
var aliases = map[string]string{
	"Point": "Tuple(Float64, Float64)", "Ring": "Array(Point)", "LineString": "Array(Point)",
	"MultiLineString": "Array(LineString)", "Polygon": "Array(Ring)", "MultiPolygon": "Array(Polygon)",
}

// maxDepth bounds types inside of types: the text may come from anywhere.
const maxDepth = 50

// Parse takes the name of a type apart.
func Parse(name string) (*Type, error) { return parse(name, 0) }

func parse(name string, depth int) (*Type, error) {
	name = strings.TrimSpace(name)
	if depth > maxDepth {
		return nil, fmt.Errorf("the type %.40s... is too deep", name)
	}
	if known, isKnown := simple[name]; isKnown {
		known.Name = name
		return &known, nil
	}
	if alias, isAlias := aliases[name]; isAlias {
		parsed, err := parse(alias, depth+1)
		if err == nil {
			parsed.Name = name
		}
		return parsed, err
	}
	family, rest, hasArguments := strings.Cut(name, "(")
	arguments, err := split(strings.TrimSuffix(rest, ")"))
	if err != nil || !hasArguments || !strings.HasSuffix(rest, ")") || len(arguments) == 0 {
		return nil, unknown(name)
	}
	parsed := &Type{Name: name}
	if err := parsed.fill(family, arguments, depth); err != nil {
		return nil, err
	}
	return parsed, nil
}

func unknown(name string) error { return fmt.Errorf("rows can't give values of the type %s", name) }

func (t *Type) fill(family string, arguments []string, depth int) error {
	switch family {
	case "FixedString":
		size, err := strconv.Atoi(arguments[0])
		if err != nil || size <= 0 {
			return unknown(t.Name)
		}
		t.Kind, t.Size = FixedString, size
		return nil
	case "DateTime":
		t.Kind, t.Size = DateTime, 4
		return nil
	case "DateTime64":
		return t.scaled(DateTime64, 8, arguments[0], 9)
	case "Decimal":
		return t.decimal(arguments)
	case "Enum8":
		return t.enum(1, arguments)
	case "Enum16":
		return t.enum(2, arguments)
	case "SimpleAggregateFunction":
		inner, err := parse(arguments[len(arguments)-1], depth+1)
		if err != nil || len(arguments) != 2 {
			return unknown(t.Name)
		}
		name := t.Name
		*t = *inner
		t.Name = name
		return nil
	case "Nullable", "LowCardinality", "Array":
		t.Kind = map[string]Kind{"Nullable": Nullable, "LowCardinality": LowCardinality, "Array": Array}[family]
		return t.elements(arguments, 1, depth)
	case "Map":
		t.Kind = Map
		return t.elements(arguments, 2, depth)
	case "Tuple":
		t.Kind = Tuple
		return t.tuple(arguments, depth)
	case "Nested":
		inner := &Type{Name: t.Name, Kind: Tuple}
		t.Kind, t.Elements = Array, []*Type{inner}
		return inner.tuple(arguments, depth)
	}
	return unknown(t.Name)
}

func (t *Type) scaled(kind Kind, size int, scale string, most int) error {
	digits, err := strconv.Atoi(strings.TrimSpace(scale))
	if err != nil || digits < 0 || digits > most {
		return unknown(t.Name)
	}
	t.Kind, t.Size, t.Scale = kind, size, digits
	return nil
}

func (t *Type) decimal(arguments []string) error {
	precision, err := strconv.Atoi(arguments[0])
	if err != nil || precision < 1 || precision > 76 || len(arguments) != 2 {
		return unknown(t.Name)
	}
	size := 4
	for _, limit := range []int{9, 18, 38} {
		if precision > limit {
			size *= 2
		}
	}
	return t.scaled(Decimal, size, arguments[1], precision)
}

func (t *Type) enum(size int, arguments []string) error {
	t.Kind, t.Size, t.Values = Enum, size, map[string]int64{}
	for _, argument := range arguments {
		argument = strings.TrimSpace(argument)
		at := strings.LastIndex(argument, "=")
		if at < 0 {
			return unknown(t.Name)
		}
		value, err := strconv.ParseInt(strings.TrimSpace(argument[at+1:]), 10, 8*size)
		name := strings.TrimSpace(argument[:at])
		if err != nil || len(name) < 2 || name[0] != '\'' || name[len(name)-1] != '\'' {
			return unknown(t.Name)
		}
		t.Values[unescaped(name[1:len(name)-1])] = value
	}
	return nil
}

func unescaped(text string) string {
	var out strings.Builder
	for at := 0; at < len(text); at++ {
		if text[at] == '\\' && at+1 < len(text) {
			at++
			out.WriteByte(escape(text[at]))
			continue
		}
		out.WriteByte(text[at])
	}
	return out.String()
}

func escape(letter byte) byte {
	if at := strings.IndexByte("bfnrt0av", letter); at >= 0 {
		return "\b\f\n\r\t\x00\a\v"[at]
	}
	return letter
}

func (t *Type) elements(arguments []string, count, depth int) error {
	if len(arguments) != count {
		return unknown(t.Name)
	}
	for _, argument := range arguments {
		element, err := parse(argument, depth+1)
		if err != nil {
			return err
		}
		t.Elements = append(t.Elements, element)
	}
	return nil
}

// tuple reads elements with names or without.
func (t *Type) tuple(arguments []string, depth int) error {
	for _, argument := range arguments {
		argument = strings.TrimSpace(argument)
		if element, err := parse(argument, depth+1); err == nil {
			t.Elements = append(t.Elements, element)
			continue
		}
		name, typeName, isNamed := cutName(argument)
		if !isNamed {
			return unknown(t.Name)
		}
		element, err := parse(typeName, depth+1)
		if err != nil {
			return err
		}
		t.Elements = append(t.Elements, element)
		t.Names = append(t.Names, name)
	}
	if len(t.Names) > 0 && len(t.Names) != len(t.Elements) {
		return unknown(t.Name)
	}
	return nil
}

func cutName(argument string) (name, typeName string, isNamed bool) {
	if !strings.HasPrefix(argument, "`") {
		return strings.Cut(argument, " ")
	}
	for at := 1; at < len(argument); at++ {
		switch argument[at] {
		case '\\':
			at++
		case '`':
			return unescaped(argument[1:at]), argument[at+1:], true
		}
	}
	return "", "", false
}

// split cuts at the commas that stand in no parentheses and in no quotes.
func split(text string) ([]string, error) {
	var parts []string
	depth, start, quote := 0, 0, byte(0)
	for at := 0; at < len(text); at++ {
		letter := text[at]
		switch {
		case letter == '\\':
			at++
		case quote != 0:
			if letter == quote {
				quote = 0
			}
		case letter == '\'' || letter == '`':
			quote = letter
		case letter == '(':
			depth++
		case letter == ')':
			depth--
		case letter == ',' && depth == 0:
			parts = append(parts, text[start:at])
			start = at + 1
		}
	}
	if depth != 0 || quote != 0 {
		return nil, unknown(text)
	}
	return append(parts, text[start:]), nil
}
