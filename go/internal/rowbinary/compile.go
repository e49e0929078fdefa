package rowbinary

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"time"
	"unsafe"
)

// compile makes the encoder of Go's values of one type for a type of ClickHouse's.
func compile(to *Type, from reflect.Type) (encoder, error) {
	switch {
	case to.Kind == LowCardinality:
		return compile(to.Elements[0], from)
	case to.Kind == Nullable:
		return compileNullable(to.Elements[0], from)
	case from.Kind() == reflect.Interface:
		return compileInterface(to, from), nil
	case from.Kind() == reflect.Pointer && from != reflect.TypeFor[*big.Int]():
		return compilePointer(to, from)
	}
	if exact := exactEncoder(to, from); exact != nil {
		return exact, nil
	}
	switch to.Kind {
	case Array:
		return compileArray(to, from)
	case Tuple:
		return compileTuple(to, from)
	case Map:
		return compileMap(to, from)
	}
	return compileScalar(to, from)
}

func mismatch(to *Type, from reflect.Type) error {
	return fmt.Errorf("values of %s don't fit the type %s", from, to.Name)
}

// exactEncoder is for values that Go has in memory as ClickHouse has them, or nearly: nothing is to be
// checked. It depends on numbers being little-endian, or puts them in order.
func exactEncoder(to *Type, from reflect.Type) encoder {
	switch kind := from.Kind(); {
	case to.Kind == Int && isSigned(kind) && int(from.Size()) == to.Size,
		to.Kind == UInt && isUnsigned(kind) && int(from.Size()) == to.Size,
		to.Kind == Float && (kind == reflect.Float32 || kind == reflect.Float64) && int(from.Size()) == to.Size:
		return fixedEncoder(to.Size)
	case to.Kind == Bool && kind == reflect.Bool, to.Kind == UInt && to.Size == 1 && kind == reflect.Bool:
		return fixedEncoder(1)
	case to.Kind == String && kind == reflect.String:
		return encodeString
	case to.Kind == String && kind == reflect.Slice && from.Elem().Kind() == reflect.Uint8:
		return encodeBytes
	case to.Kind == UUID && kind == reflect.Array && from.Size() == 16 && from.Elem().Kind() == reflect.Uint8:
		return encodeUUID
	}
	return nil
}

func isSigned(kind reflect.Kind) bool { return kind >= reflect.Int && kind <= reflect.Int64 }

func isUnsigned(kind reflect.Kind) bool { return kind >= reflect.Uint && kind <= reflect.Uint64 }

func fixedEncoder(size int) encoder {
	switch size {
	case 1:
		return func(out []byte, value unsafe.Pointer) ([]byte, error) { return append(out, *(*byte)(value)), nil }
	case 2:
		return func(out []byte, value unsafe.Pointer) ([]byte, error) {
			return binary.LittleEndian.AppendUint16(out, *(*uint16)(value)), nil
		}
	case 4:
		return func(out []byte, value unsafe.Pointer) ([]byte, error) {
			return binary.LittleEndian.AppendUint32(out, *(*uint32)(value)), nil
		}
	default:
		return func(out []byte, value unsafe.Pointer) ([]byte, error) {
			return binary.LittleEndian.AppendUint64(out, *(*uint64)(value)), nil
		}
	}
}

func encodeString(out []byte, value unsafe.Pointer) ([]byte, error) {
	return appendString(out, *(*string)(value)), nil
}

func encodeBytes(out []byte, value unsafe.Pointer) ([]byte, error) {
	bytes := *(*[]byte)(value)
	return append(binary.AppendUvarint(out, uint64(len(bytes))), bytes...), nil
}

func encodeUUID(out []byte, value unsafe.Pointer) ([]byte, error) {
	return appendUUID(out, *(*[16]byte)(value)), nil
}

func compileNullable(inner *Type, from reflect.Type) (encoder, error) {
	if from.Kind() == reflect.Interface {
		return compileInterface(&Type{Kind: Nullable, Name: "Nullable", Elements: []*Type{inner}}, from), nil
	}
	isPointer := from.Kind() == reflect.Pointer && from != reflect.TypeFor[*big.Int]()
	held := from
	if isPointer {
		held = from.Elem()
	}
	encode, err := compile(inner, held)
	if err != nil {
		return nil, err
	}
	if !isPointer {
		return func(out []byte, value unsafe.Pointer) ([]byte, error) { return encode(append(out, 0), value) }, nil
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		pointed := *(*unsafe.Pointer)(value)
		if pointed == nil {
			return append(out, 1), nil
		}
		return encode(append(out, 0), pointed)
	}, nil
}

func compilePointer(to *Type, from reflect.Type) (encoder, error) {
	encode, err := compile(to, from.Elem())
	if err != nil {
		return nil, err
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		pointed := *(*unsafe.Pointer)(value)
		if pointed == nil {
			return out, fmt.Errorf("nil is no %s", to.Name)
		}
		return encode(out, pointed)
	}, nil
}

func compileInterface(to *Type, from reflect.Type) encoder {
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		return AppendValue(out, to, reflect.NewAt(from, value).Elem().Interface())
	}
}

// sliceHeader is what a slice is in memory.
type sliceHeader struct {
	data   unsafe.Pointer
	length int
	_      int
}

func compileArray(to *Type, from reflect.Type) (encoder, error) {
	if from.Kind() != reflect.Slice && from.Kind() != reflect.Array {
		return nil, mismatch(to, from)
	}
	encode, err := compile(to.Elements[0], from.Elem())
	if err != nil {
		return nil, err
	}
	size := from.Elem().Size()
	appendAll := func(out []byte, data unsafe.Pointer, length int) ([]byte, error) {
		out = binary.AppendUvarint(out, uint64(length))
		var err error
		for index := 0; index < length && err == nil; index++ {
			out, err = encode(out, unsafe.Add(data, uintptr(index)*size))
		}
		return out, err
	}
	if from.Kind() == reflect.Array {
		length := from.Len()
		return func(out []byte, value unsafe.Pointer) ([]byte, error) { return appendAll(out, value, length) }, nil
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		slice := (*sliceHeader)(value)
		return appendAll(out, slice.data, slice.length)
	}, nil
}

// compileTuple takes structs, by the names of the elements or in the order of the fields, and lists of
// values.
func compileTuple(to *Type, from reflect.Type) (encoder, error) {
	if from.Kind() == reflect.Slice || from.Kind() == reflect.Array {
		return compileListTuple(to, from)
	}
	if from.Kind() != reflect.Struct {
		return nil, mismatch(to, from)
	}
	all := fieldsOf(from)
	byName := map[string]namedField{}
	for _, field := range all {
		byName[field.column] = field
	}
	var fields []field
	for index, element := range to.Elements {
		found, isThere := namedField{}, false
		if len(to.Names) > 0 {
			found, isThere = byName[to.Names[index]]
		} else if len(all) == len(to.Elements) {
			found, isThere = all[index], true
		}
		if !isThere {
			return nil, mismatch(to, from)
		}
		encode, err := compile(element, found.typ)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{found.offset, encode})
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		var err error
		for index := 0; index < len(fields) && err == nil; index++ {
			out, err = fields[index].encode(out, unsafe.Add(value, fields[index].offset))
		}
		return out, err
	}, nil
}

func compileListTuple(to *Type, from reflect.Type) (encoder, error) {
	for _, element := range to.Elements {
		if _, err := compile(element, from.Elem()); err != nil {
			return nil, err
		}
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		return appendList(out, to, reflect.NewAt(from, value).Elem())
	}, nil
}

func compileMap(to *Type, from reflect.Type) (encoder, error) {
	if from.Kind() != reflect.Map {
		return nil, mismatch(to, from)
	}
	for index, inner := range []reflect.Type{from.Key(), from.Elem()} {
		if _, err := compile(to.Elements[index], inner); err != nil {
			return nil, err
		}
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		return appendMap(out, to, reflect.NewAt(from, value).Elem())
	}, nil
}

// takers are the Go types that a kind takes beside numbers.
var takers = map[Kind][]reflect.Type{
	Int: {reflect.TypeFor[*big.Int](), reflect.TypeFor[time.Duration]()}, UInt: {reflect.TypeFor[*big.Int]()},
	Date: {reflect.TypeFor[time.Time]()}, Date32: {reflect.TypeFor[time.Time]()},
	DateTime: {reflect.TypeFor[time.Time]()}, DateTime64: {reflect.TypeFor[time.Time]()},
	IPv4: {reflect.TypeFor[netip.Addr](), reflect.TypeFor[net.IP](), reflect.TypeFor[string]()},
	IPv6: {reflect.TypeFor[netip.Addr](), reflect.TypeFor[net.IP](), reflect.TypeFor[string]()},
}

// compileScalar is for values that are converted and checked one by one.
func compileScalar(to *Type, from reflect.Type) (encoder, error) {
	if !takes(to, from) {
		return nil, mismatch(to, from)
	}
	if from == reflect.TypeFor[time.Time]() {
		return func(out []byte, value unsafe.Pointer) ([]byte, error) {
			return appendTime(out, to, *(*time.Time)(value))
		}, nil
	}
	return func(out []byte, value unsafe.Pointer) ([]byte, error) {
		return appendReflected(out, to, reflect.NewAt(from, value).Elem())
	}, nil
}

func takes(to *Type, from reflect.Type) bool {
	for _, taken := range takers[to.Kind] {
		if from == taken {
			return true
		}
	}
	kind := from.Kind()
	isWhole := isSigned(kind) || isUnsigned(kind)
	isBytes := (kind == reflect.Slice || kind == reflect.Array) && from.Elem().Kind() == reflect.Uint8
	switch to.Kind {
	case Int, UInt, Date, Date32, DateTime, DateTime64:
		return isWhole
	case Float:
		return isWhole || kind == reflect.Float32 || kind == reflect.Float64
	case Bool:
		return kind == reflect.Bool
	case String, FixedString, UUID:
		return kind == reflect.String || isBytes
	case Enum:
		return isWhole || kind == reflect.String
	case Decimal:
		return isWhole || kind == reflect.String || from.Implements(reflect.TypeFor[fmt.Stringer]())
	}
	return false
}
