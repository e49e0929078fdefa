package rowbinary

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"time"
)

var errRange = errors.New("the value is out of the type's range")

// AppendValue appends a value of whatever type.
func AppendValue(out []byte, to *Type, value any) ([]byte, error) {
	switch to.Kind {
	case LowCardinality:
		return AppendValue(out, to.Elements[0], value)
	case Nullable:
		if isNil(value) {
			return append(out, 1), nil
		}
		return AppendValue(append(out, 0), to.Elements[0], value)
	}
	// The values that most rows are made of, without a look at their types through package reflect.
	switch value := value.(type) {
	case string:
		if to.Kind == String {
			return appendString(out, value), nil
		}
	case int64:
		return appendInt(out, to, value)
	case int:
		return appendInt(out, to, int64(value))
	case int32:
		return appendInt(out, to, int64(value))
	case uint64:
		return appendUint(out, to, value)
	case uint32:
		return appendUint(out, to, uint64(value))
	case float64:
		return appendFloat(out, to, value)
	case time.Time:
		return appendTime(out, to, value)
	}
	return appendReflected(out, to, reflect.ValueOf(value))
}

func isNil(value any) bool {
	if value == nil {
		return true
	}
	reflected := reflect.ValueOf(value)
	return reflected.Kind() == reflect.Pointer && reflected.IsNil()
}

func appendReflected(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	if !value.IsValid() {
		return out, fmt.Errorf("nil is no %s", to.Name)
	}
	switch to.Kind {
	case LowCardinality, Nullable:
		return AppendValue(out, to, value.Interface())
	}
	if value.Type() == reflect.TypeFor[*big.Int]() && !value.IsNil() && (to.Kind == Int || to.Kind == UInt) {
		return appendBig(out, to, value.Interface().(*big.Int))
	}
	if value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		return appendPointed(out, to, value)
	}
	if encoded, isDone, err := appendSpecial(out, to, value); isDone {
		return encoded, err
	}
	switch {
	case isSigned(value.Kind()):
		return appendInt(out, to, value.Int())
	case isUnsigned(value.Kind()):
		return appendUint(out, to, value.Uint())
	case value.Kind() == reflect.Float32 || value.Kind() == reflect.Float64:
		return appendFloat(out, to, value.Float())
	case value.Kind() == reflect.Bool && (to.Kind == Bool || to.Kind == UInt && to.Size == 1):
		if value.Bool() {
			return append(out, 1), nil
		}
		return append(out, 0), nil
	}
	return out, mismatch(to, value.Type())
}

func appendPointed(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	if value.IsNil() {
		return out, fmt.Errorf("nil is no %s", to.Name)
	}
	if _, isText := value.Interface().(fmt.Stringer); isText && to.Kind == Decimal {
		return appendDecimal(out, to, value.Interface().(fmt.Stringer).String())
	}
	return appendReflected(out, to, value.Elem())
}

// appendSpecial is for types that are no numbers.
func appendSpecial(out []byte, to *Type, value reflect.Value) ([]byte, bool, error) {
	encoded, err := out, error(nil)
	switch to.Kind {
	case String, FixedString, UUID:
		encoded, err = appendTextual(out, to, value)
	case Enum:
		if value.Kind() != reflect.String {
			return out, false, nil
		}
		number, isKnown := to.Values[value.String()]
		if !isKnown {
			return out, true, fmt.Errorf("%q is no value of the Enum", value.String())
		}
		encoded = appendFixed(out, to.Size, uint64(number))
	case Decimal:
		encoded, err = appendDecimalValue(out, to, value)
	case IPv4, IPv6:
		encoded, err = appendAddress(out, to, value)
	case Date, Date32, DateTime, DateTime64:
		moment, isTime := value.Interface().(time.Time)
		if !isTime {
			return out, false, nil
		}
		encoded, err = appendTime(out, to, moment)
	case Array, Tuple, Map:
		encoded, err = appendMany(out, to, value)
	default:
		return out, false, nil
	}
	return encoded, true, err
}

func appendMany(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	isList := value.Kind() == reflect.Slice || value.Kind() == reflect.Array
	switch {
	case to.Kind == Map && value.Kind() == reflect.Map:
		return appendMap(out, to, value)
	case to.Kind == Tuple && isList:
		return appendList(out, to, value)
	case to.Kind == Tuple && value.Kind() == reflect.Struct:
		return appendStruct(out, to, value)
	case to.Kind == Array && isList:
		out = binary.AppendUvarint(out, uint64(value.Len()))
		var err error
		for index := 0; index < value.Len() && err == nil; index++ {
			out, err = AppendValue(out, to.Elements[0], value.Index(index).Interface())
		}
		return out, err
	}
	return out, mismatch(to, value.Type())
}

func appendStruct(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	encode, err := compileTuple(to, value.Type())
	if err != nil {
		return out, err
	}
	held := reflect.New(value.Type())
	held.Elem().Set(value)
	return encode(out, held.UnsafePointer())
}

func appendList(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	if value.Len() != len(to.Elements) {
		return out, fmt.Errorf("%d values are no %s", value.Len(), to.Name)
	}
	var err error
	for index := 0; index < value.Len() && err == nil; index++ {
		out, err = AppendValue(out, to.Elements[index], value.Index(index).Interface())
	}
	return out, err
}

func appendMap(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	out = binary.AppendUvarint(out, uint64(value.Len()))
	var err error
	for entries := value.MapRange(); entries.Next(); {
		if out, err = AppendValue(out, to.Elements[0], entries.Key().Interface()); err != nil {
			return out, err
		}
		if out, err = AppendValue(out, to.Elements[1], entries.Value().Interface()); err != nil {
			return out, err
		}
	}
	return out, nil
}

func appendString(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

func bytesOf(value reflect.Value) ([]byte, bool) {
	switch {
	case value.Kind() == reflect.String:
		return []byte(value.String()), true
	case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8:
		return value.Bytes(), true
	case value.Kind() == reflect.Array && value.Type().Elem().Kind() == reflect.Uint8:
		bytes := make([]byte, value.Len())
		reflect.Copy(reflect.ValueOf(bytes), value)
		return bytes, true
	}
	return nil, false
}

func appendTextual(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	bytes, hasBytes := bytesOf(value)
	switch {
	case !hasBytes:
		return out, mismatch(to, value.Type())
	case to.Kind == String:
		return append(binary.AppendUvarint(out, uint64(len(bytes))), bytes...), nil
	case to.Kind == UUID && value.Kind() == reflect.String:
		return appendUUIDText(out, string(bytes))
	case to.Kind == UUID && len(bytes) == 16:
		return appendUUID(out, [16]byte(bytes)), nil
	case to.Kind == UUID || len(bytes) > to.Size:
		return out, fmt.Errorf("%d bytes are no %s", len(bytes), to.Name)
	}
	out = append(out, bytes...)
	return append(out, make([]byte, to.Size-len(bytes))...), nil
}

func appendUUIDText(out []byte, text string) ([]byte, error) {
	bytes, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(bytes) != 16 {
		return out, errors.New("the text is no UUID")
	}
	return appendUUID(out, [16]byte(bytes)), nil
}

// appendUUID writes the halves each as a number.
func appendUUID(out []byte, id [16]byte) []byte {
	out = binary.LittleEndian.AppendUint64(out, binary.BigEndian.Uint64(id[:8]))
	return binary.LittleEndian.AppendUint64(out, binary.BigEndian.Uint64(id[8:]))
}

func appendFixed(out []byte, size int, value uint64) []byte {
	switch size {
	case 1:
		return append(out, byte(value))
	case 2:
		return binary.LittleEndian.AppendUint16(out, uint16(value))
	case 4:
		return binary.LittleEndian.AppendUint32(out, uint32(value))
	}
	return binary.LittleEndian.AppendUint64(out, value)
}

// appendInt takes a whole number for whatever type is made of such: a Date is a number of days, a DateTime of
// seconds, a DateTime64 of its ticks.
func appendInt(out []byte, to *Type, value int64) ([]byte, error) {
	switch to.Kind {
	case Int, Date32, DateTime64, Enum:
		return appendSigned(out, to, value)
	case UInt, Date, DateTime:
		if value < 0 {
			return out, errRange
		}
		return appendUint(out, to, uint64(value))
	case Float:
		return appendFloat(out, to, float64(value))
	case Decimal:
		return appendUnscaled(out, to, big.NewInt(value))
	}
	return out, mismatch(to, reflect.TypeOf(value))
}

func appendSigned(out []byte, to *Type, value int64) ([]byte, error) {
	if to.Size > 8 {
		return appendBig(out, to, big.NewInt(value))
	}
	if shift := 64 - 8*to.Size; value<<shift>>shift != value {
		return out, errRange
	}
	return appendFixed(out, to.Size, uint64(value)), nil
}

func appendUint(out []byte, to *Type, value uint64) ([]byte, error) {
	switch {
	case (to.Kind == UInt || to.Kind == Date || to.Kind == DateTime) && to.Size <= 8:
		if shift := 64 - 8*to.Size; value<<shift>>shift != value {
			return out, errRange
		}
		return appendFixed(out, to.Size, value), nil
	case to.Kind == UInt:
		return appendBig(out, to, new(big.Int).SetUint64(value))
	case value > math.MaxInt64 && to.Size > 8 && to.Kind == Int:
		return appendBig(out, to, new(big.Int).SetUint64(value))
	case value > math.MaxInt64:
		return out, errRange
	}
	return appendInt(out, to, int64(value))
}

func appendFloat(out []byte, to *Type, value float64) ([]byte, error) {
	switch {
	case to.Kind == Float && to.Size == 4:
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(value))), nil
	case to.Kind == Float:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(value)), nil
	}
	return out, mismatch(to, reflect.TypeOf(value))
}

// appendBig writes a whole number in two's complement.
func appendBig(out []byte, to *Type, value *big.Int) ([]byte, error) {
	bits := 8 * to.Size
	if to.Kind == UInt && (value.Sign() < 0 || value.BitLen() > bits) {
		return out, errRange
	}
	if to.Kind != UInt {
		// -2^(bits-1) needs as many bits as its positive, and fits.
		smallest := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), uint(bits-1)))
		if value.BitLen() >= bits && value.Cmp(smallest) != 0 {
			return out, errRange
		}
	}
	if value.Sign() < 0 {
		value = new(big.Int).Add(value, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	bigEndian := value.FillBytes(make([]byte, to.Size))
	for index := len(bigEndian) - 1; index >= 0; index-- {
		out = append(out, bigEndian[index])
	}
	return out, nil
}

func appendDecimalValue(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	switch {
	case value.Kind() == reflect.String:
		return appendDecimal(out, to, value.String())
	case isSigned(value.Kind()):
		return appendUnscaled(out, to, big.NewInt(value.Int()))
	case isUnsigned(value.Kind()):
		return appendUnscaled(out, to, new(big.Int).SetUint64(value.Uint()))
	}
	if text, isText := value.Interface().(fmt.Stringer); isText {
		return appendDecimal(out, to, text.String())
	}
	return out, mismatch(to, value.Type())
}

func appendUnscaled(out []byte, to *Type, value *big.Int) ([]byte, error) {
	return appendBig(out, to, new(big.Int).Mul(value, power(to.Scale)))
}

func power(digits int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
}

// appendDecimal reads a number's text. Digits that the type has no room for are an error: they would be lost
// in silence.
func appendDecimal(out []byte, to *Type, text string) ([]byte, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > to.Scale {
		return out, fmt.Errorf("%s has more than %d digits behind the point", text, to.Scale)
	}
	digits := whole + fraction + strings.Repeat("0", to.Scale-len(fraction))
	value, isNumber := new(big.Int).SetString(digits, 10)
	if !isNumber || len(digits) > 100 {
		return out, fmt.Errorf("%.40q is no number", text)
	}
	return appendBig(out, to, value)
}

func appendAddress(out []byte, to *Type, value reflect.Value) ([]byte, error) {
	var address netip.Addr
	switch held := value.Interface().(type) {
	case netip.Addr:
		address = held
	case net.IP:
		address, _ = netip.AddrFromSlice(held)
	case string:
		address, _ = netip.ParseAddr(held)
	default:
		if to.Kind == IPv4 && isUnsigned(value.Kind()) {
			return appendUint(out, &Type{Kind: UInt, Name: to.Name, Size: 4}, value.Uint())
		}
		return out, mismatch(to, value.Type())
	}
	switch {
	case !address.IsValid():
		return out, fmt.Errorf("the value is no %s", to.Name)
	case to.Kind == IPv6:
		bytes := address.As16()
		return append(out, bytes[:]...), nil
	case !address.Unmap().Is4():
		return out, fmt.Errorf("the value is no %s", to.Name)
	}
	bytes := address.Unmap().As4()
	return binary.LittleEndian.AppendUint32(out, binary.BigEndian.Uint32(bytes[:])), nil
}

const secondsPerDay = 24 * 60 * 60

// appendTime takes a moment. A Date is the day that the moment's own time zone has.
func appendTime(out []byte, to *Type, moment time.Time) ([]byte, error) {
	switch to.Kind {
	case Date, Date32:
		year, month, day := moment.Date()
		return appendInt(out, to, time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()/secondsPerDay)
	case DateTime:
		return appendInt(out, to, moment.Unix())
	case DateTime64:
		return appendTicks(out, to, moment)
	}
	return out, mismatch(to, reflect.TypeFor[time.Time]())
}

func appendTicks(out []byte, to *Type, moment time.Time) ([]byte, error) {
	perSecond := int64(math.Pow10(to.Scale))
	seconds := moment.Unix()
	if seconds > math.MaxInt64/perSecond-1 || seconds < math.MinInt64/perSecond+1 {
		return out, errRange
	}
	ticks := seconds*perSecond + int64(moment.Nanosecond())/int64(math.Pow10(9-to.Scale))
	return binary.LittleEndian.AppendUint64(out, uint64(ticks)), nil
}
