package native

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"

	windrow "windrow.dev/go"
	"windrow.dev/go/internal/rowbinary"
)

var errRows = errors.New("windrow: rows can't be read as their columns' types")

// columnsOf puts rows into columns.
func columnsOf(destination *windrow.Destination, rows windrow.Rows) ([]*column, error) {
	columns := make([]*column, len(destination.Types))
	nodes := make([]node, len(columns))
	for index, name := range destination.Types {
		parsed, err := rowbinary.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", destination.Columns[index], err)
		}
		nodes[index] = newNode(parsed)
		columns[index] = &column{typeName: name, rows: rows.Count(), root: nodes[index]}
	}
	rest := rows.Bytes
	for range rows.Count() {
		for _, node := range nodes {
			length := node.take(rest)
			if length < 0 {
				return nil, errRows
			}
			rest = rest[length:]
		}
	}
	if len(rest) > 0 {
		return nil, errRows
	}
	return columns, nil
}

// column is what ch-go sends.
type column struct {
	typeName string
	rows     int
	root     node
}

// Type gives ClickHouse's name of the type.
func (c *column) Type() proto.ColumnType { return proto.ColumnType(c.typeName) }

// Infer is told the type that the column has in the table, before anything is sent. ClickHouse would cast what
// comes in another one, and cut what doesn't fit.
func (c *column) Infer(inTable proto.ColumnType) error {
	if string(inTable) == c.typeName {
		return nil
	}
	// As it says itself of rows that have their types in front.
	text := fmt.Sprintf("Type of a column must be %s, not %s: (while reading header)", inTable, c.typeName)
	return &windrow.Exception{Code: 117, Text: text}
}

// Rows says how many values there are.
func (c *column) Rows() int { return c.rows }

// EncodeState writes what stands in front of the column.
func (c *column) EncodeState(to *proto.Buffer) { to.Buf = c.root.appendState(to.Buf) }

// EncodeColumn writes the column.
func (c *column) EncodeColumn(to *proto.Buffer) { to.Buf = c.root.appendTo(to.Buf) }

// WriteColumn writes the column.
func (c *column) WriteColumn(to *proto.Writer) { to.ChainBuffer(c.EncodeColumn) }

// node is a column, or a part of one.
type node interface {
	// take takes the value that the bytes begin with, and says how long it is: less than 0 if it isn't all
	// there.
	take(bytes []byte) int
	// takeDefault takes a value that nobody will see, in the place of a NULL.
	takeDefault()
	// appendState writes what stands in front of the whole column.
	appendState(out []byte) []byte
	appendTo(out []byte) []byte
}

func newNode(of *rowbinary.Type) node {
	switch of.Kind {
	case rowbinary.String:
		return &stringNode{}
	case rowbinary.Nullable:
		return &nullableNode{inner: newNode(of.Elements[0])}
	case rowbinary.LowCardinality:
		return newDictionaryNode(of.Elements[0])
	case rowbinary.Array:
		return &arrayNode{inner: newNode(of.Elements[0])}
	case rowbinary.Map:
		return &arrayNode{inner: newTuple(of)}
	case rowbinary.Tuple:
		return newTuple(of)
	}
	return &fixedNode{size: of.Size}
}

// fixedNode is values that all have the same size.
type fixedNode struct {
	size  int
	bytes []byte
}

func (n *fixedNode) take(bytes []byte) int {
	if len(bytes) < n.size {
		return -1
	}
	n.bytes = append(n.bytes, bytes[:n.size]...)
	return n.size
}

func (n *fixedNode) takeDefault() { n.bytes = append(n.bytes, make([]byte, n.size)...) }

func (n *fixedNode) appendState(out []byte) []byte { return out }

func (n *fixedNode) appendTo(out []byte) []byte { return append(out, n.bytes...) }

// stringNode is texts behind their lengths.
type stringNode struct{ bytes []byte }

func (n *stringNode) take(bytes []byte) int {
	length, size := binary.Uvarint(bytes)
	if size <= 0 || length > uint64(len(bytes)-size) {
		return -1
	}
	size += int(length)
	n.bytes = append(n.bytes, bytes[:size]...)
	return size
}

func (n *stringNode) takeDefault() { n.bytes = append(n.bytes, 0) }

func (n *stringNode) appendState(out []byte) []byte { return out }

func (n *stringNode) appendTo(out []byte) []byte { return append(out, n.bytes...) }

// nullableNode has a byte for each value, and then the values, also where they are NULL.
type nullableNode struct {
	nulls []byte
	inner node
}

func (n *nullableNode) take(bytes []byte) int {
	if len(bytes) == 0 {
		return -1
	}
	n.nulls = append(n.nulls, bytes[0])
	if bytes[0] != 0 {
		n.inner.takeDefault()
		return 1
	}
	length := n.inner.take(bytes[1:])
	if length < 0 {
		return -1
	}
	return 1 + length
}

func (n *nullableNode) takeDefault() {
	n.nulls = append(n.nulls, 1)
	n.inner.takeDefault()
}

func (n *nullableNode) appendState(out []byte) []byte { return n.inner.appendState(out) }

func (n *nullableNode) appendTo(out []byte) []byte { return n.inner.appendTo(append(out, n.nulls...)) }

// arrayNode has the number of elements up to the end of each value, and then the elements.
type arrayNode struct {
	offsets []byte
	count   uint64
	inner   node
}

func (n *arrayNode) take(bytes []byte) int {
	count, size := binary.Uvarint(bytes)
	if size <= 0 {
		return -1
	}
	for range count {
		length := n.inner.take(bytes[size:])
		if length < 0 {
			return -1
		}
		size += length
	}
	n.end(count)
	return size
}

func (n *arrayNode) end(count uint64) {
	n.count += count
	n.offsets = binary.LittleEndian.AppendUint64(n.offsets, n.count)
}

func (n *arrayNode) takeDefault() { n.end(0) }

func (n *arrayNode) appendState(out []byte) []byte { return n.inner.appendState(out) }

func (n *arrayNode) appendTo(out []byte) []byte { return n.inner.appendTo(append(out, n.offsets...)) }

// tupleNode is columns beside each other.
type tupleNode []node

func newTuple(of *rowbinary.Type) tupleNode {
	var all tupleNode
	for _, element := range of.Elements {
		all = append(all, newNode(element))
	}
	return all
}

func (n tupleNode) take(bytes []byte) int {
	size := 0
	for _, element := range n {
		length := element.take(bytes[size:])
		if length < 0 {
			return -1
		}
		size += length
	}
	return size
}

func (n tupleNode) takeDefault() {
	for _, element := range n {
		element.takeDefault()
	}
}

func (n tupleNode) appendState(out []byte) []byte {
	for _, element := range n {
		out = element.appendState(out)
	}
	return out
}

func (n tupleNode) appendTo(out []byte) []byte {
	for _, element := range n {
		out = element.appendTo(out)
	}
	return out
}

// dictionaryNode is a LowCardinality: each value once, and the numbers of the values.
type dictionaryNode struct {
	isNullable bool
	inner      node
	size       uint64
	numbers    map[string]uint64
	keys       []uint64
}

const (
	dictionaryVersion = 1
	// The dictionary stands in the block itself: it has keys of its own, and the reader's is to be replaced.
	hasOwnKeys     = 1 << 9
	isToBeReplaced = 1 << 10
)

func newDictionaryNode(inner *rowbinary.Type) *dictionaryNode {
	made := &dictionaryNode{numbers: map[string]uint64{}}
	if inner.Kind == rowbinary.Nullable {
		made.isNullable = true
		inner = inner.Elements[0]
	}
	made.inner = newNode(inner)
	if made.isNullable {
		// The first one stands for NULL.
		made.inner.takeDefault()
		made.size = 1
	}
	return made
}

func (n *dictionaryNode) take(bytes []byte) int {
	before := 0
	if n.isNullable {
		if len(bytes) == 0 {
			return -1
		}
		if bytes[0] != 0 {
			n.keys = append(n.keys, 0)
			return 1
		}
		before = 1
	}
	length := n.lengthOf(bytes[before:])
	if length < 0 {
		return -1
	}
	value := bytes[before : before+length]
	number, isKnown := n.numbers[string(value)]
	if !isKnown {
		number = n.size
		n.size++
		n.numbers[string(value)] = number
		n.inner.take(value)
	}
	n.keys = append(n.keys, number)
	return before + length
}

// lengthOf says how long the value is that the bytes begin with. Dictionaries are of texts and of fixed
// sizes.
func (n *dictionaryNode) lengthOf(bytes []byte) int {
	if fixed, isFixed := n.inner.(*fixedNode); isFixed {
		if len(bytes) < fixed.size {
			return -1
		}
		return fixed.size
	}
	length, size := binary.Uvarint(bytes)
	if size <= 0 || length > uint64(len(bytes)-size) {
		return -1
	}
	return size + int(length)
}

func (n *dictionaryNode) takeDefault() {
	if n.isNullable {
		n.keys = append(n.keys, 0)
		return
	}
	switch inner := n.inner.(type) {
	case *fixedNode:
		n.take(make([]byte, inner.size))
	default:
		n.take([]byte{0})
	}
}

func (n *dictionaryNode) appendState(out []byte) []byte {
	return binary.LittleEndian.AppendUint64(out, dictionaryVersion)
}

func (n *dictionaryNode) appendTo(out []byte) []byte {
	if len(n.keys) == 0 {
		return out
	}
	width := 0
	for width < 3 && n.size > 1<<(8<<width) {
		width++
	}
	out = binary.LittleEndian.AppendUint64(out, uint64(width)|hasOwnKeys|isToBeReplaced)
	out = n.inner.appendTo(binary.LittleEndian.AppendUint64(out, n.size))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(n.keys)))
	for _, key := range n.keys {
		var bytes [8]byte
		binary.LittleEndian.PutUint64(bytes[:], key)
		out = append(out, bytes[:1<<width]...)
	}
	return out
}
