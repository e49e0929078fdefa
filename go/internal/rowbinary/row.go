package rowbinary

import (
	"fmt"
	"reflect"
	"unsafe"
)

// RowEncoder encodes rows of one Go type for given columns.
type RowEncoder struct {
	// fields of a struct, one for each column.
	fields []field
	// types of a list's values, one for each column.
	types   []*Type
	columns []string
}

type field struct {
	offset uintptr
	encode encoder
}

// encoder appends the value at the pointer.
type encoder func(out []byte, value unsafe.Pointer) ([]byte, error)

// ColumnsOf gives the columns of a struct: the `ch` tags of its fields, or their names, but for `ch:"-"`. It
// gives none for what is no struct.
func ColumnsOf[T any]() []string {
	var names []string
	for _, field := range fieldsOf(reflect.TypeFor[T]()) {
		names = append(names, field.column)
	}
	return names
}

type namedField struct {
	column string
	offset uintptr
	typ    reflect.Type
}

// fieldsOf lists a struct's fields, with those of embedded structs.
func fieldsOf(typ reflect.Type) []namedField {
	if typ.Kind() != reflect.Struct {
		return nil
	}
	var fields []namedField
	for index := range typ.NumField() {
		field := typ.Field(index)
		tag, isTagged := field.Tag.Lookup("ch")
		switch {
		case tag == "-" || !field.IsExported() && !field.Anonymous:
		case field.Anonymous && !isTagged && field.Type.Kind() == reflect.Struct:
			for _, inner := range fieldsOf(field.Type) {
				inner.offset += field.Offset
				fields = append(fields, inner)
			}
		case isTagged && tag != "":
			fields = append(fields, namedField{tag, field.Offset, field.Type})
		case field.IsExported():
			fields = append(fields, namedField{field.Name, field.Offset, field.Type})
		}
	}
	return fields
}

// NewRowEncoder checks that rows of type T, a struct or a list of values, can be encoded for the columns.
func NewRowEncoder[T any](columns, types []string) (*RowEncoder, error) {
	typ := reflect.TypeFor[T]()
	encoder := &RowEncoder{columns: columns}
	for index, name := range types {
		parsed, err := Parse(name)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", columns[index], err)
		}
		encoder.types = append(encoder.types, parsed)
	}
	if typ.Kind() == reflect.Slice && typ.Elem() == reflect.TypeFor[any]() {
		return encoder, nil
	}
	if typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a row is a struct or windrow.Row, not %s", typ)
	}
	return encoder, encoder.compile(typ)
}

func (e *RowEncoder) compile(typ reflect.Type) error {
	byColumn := map[string]namedField{}
	for _, field := range fieldsOf(typ) {
		byColumn[field.column] = field
	}
	for index, column := range e.columns {
		found, isThere := byColumn[column]
		if !isThere {
			return fmt.Errorf("%s has no field for column %s", typ, column)
		}
		encode, err := compile(e.types[index], found.typ)
		if err != nil {
			return fmt.Errorf("column %s: %w", column, err)
		}
		e.fields = append(e.fields, field{found.offset, encode})
	}
	return nil
}

// AppendRow appends a row. An error comes with the column's name.
func AppendRow[T any](e *RowEncoder, out []byte, row *T) ([]byte, string, error) {
	if e.fields == nil {
		values := *(*[]any)(unsafe.Pointer(row))
		return e.appendValues(out, values)
	}
	start := unsafe.Pointer(row)
	var err error
	for index := range e.fields {
		field := &e.fields[index]
		if out, err = field.encode(out, unsafe.Add(start, field.offset)); err != nil {
			return out, e.columns[index], err
		}
	}
	return out, "", nil
}

func (e *RowEncoder) appendValues(out []byte, values []any) ([]byte, string, error) {
	if len(values) != len(e.columns) {
		return out, "", fmt.Errorf("the row has %d values, and there are %d columns", len(values), len(e.columns))
	}
	var err error
	for index, value := range values {
		if out, err = AppendValue(out, e.types[index], value); err != nil {
			return out, e.columns[index], err
		}
	}
	return out, "", nil
}
