package windrow

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Destination is where rows go. Buffers that survive keep it beside the rows, since only with it do the bytes
// mean anything.
type Destination struct {
	Database string
	Table    string
	Columns  []string
	// Types has ClickHouse's names of the types that the rows were encoded for, one for each column.
	Types []string
}

const destinationVersion = 1

// IsSameTable says whether both are the same table, whatever the columns.
func (d *Destination) IsSameTable(other *Destination) bool {
	return d.Database == other.Database && d.Table == other.Table
}

// MarshalBinary writes the version and each text behind its length, for buffers that keep it.
func (d *Destination) MarshalBinary() ([]byte, error) {
	out := appendText([]byte{destinationVersion}, d.Database)
	out = appendText(out, d.Table)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(d.Columns)))
	for index, column := range d.Columns {
		out = appendText(appendText(out, column), d.Types[index])
	}
	return out, nil
}

// UnmarshalBinary reads what MarshalBinary has written, and nothing else.
func (d *Destination) UnmarshalBinary(data []byte) error {
	reader := textReader{rest: data}
	version := reader.take(1)
	read := Destination{Database: reader.text(), Table: reader.text()}
	for count := reader.count(); count > 0 && !reader.failed; count-- {
		read.Columns = append(read.Columns, reader.text())
		read.Types = append(read.Types, reader.text())
	}
	if reader.failed || version[0] != destinationVersion || len(reader.rest) > 0 {
		return errNoDestination
	}
	*d = read
	return nil
}

// InsertStatement is the statement that the header and the rows are the data of. With the types in front, a
// table whose columns have changed since refuses the rows instead of reading them as something else.
func (d *Destination) InsertStatement() string {
	var out strings.Builder
	out.WriteString("INSERT INTO ")
	out.WriteString(d.QuotedTable())
	out.WriteString(d.QuotedColumns())
	out.WriteString(" FORMAT RowBinaryWithNamesAndTypes")
	return out.String()
}

// QuotedTable gives the table's name, with its database's, as a statement needs it.
func (d *Destination) QuotedTable() string {
	if d.Database == "" {
		return quoted(d.Table)
	}
	return quoted(d.Database) + "." + quoted(d.Table)
}

// QuotedColumns gives the list of the columns in parentheses, as a statement needs it.
func (d *Destination) QuotedColumns() string {
	if len(d.Columns) == 0 {
		return ""
	}
	names := make([]string, len(d.Columns))
	for index, column := range d.Columns {
		names[index] = quoted(column)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// Header is what stands in front of a batch's rows: number, names and types of the columns.
func (d *Destination) Header() []byte {
	out := binary.AppendUvarint(nil, uint64(len(d.Columns)))
	for _, texts := range [][]string{d.Columns, d.Types} {
		for _, text := range texts {
			out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
		}
	}
	return out
}

var escaped = strings.NewReplacer("`", "\\`", `\`, `\\`)

func quoted(name string) string { return "`" + escaped.Replace(name) + "`" }

func appendText(out []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), text...)
}

// textReader takes texts off bytes that may be anything. After the first that isn't there it gives nothing
// more.
type textReader struct {
	rest   []byte
	failed bool
}

func (r *textReader) take(length int) []byte {
	if r.failed || length > len(r.rest) {
		r.failed = true
		return make([]byte, 1)
	}
	taken := r.rest[:length]
	r.rest = r.rest[length:]
	return taken
}

func (r *textReader) count() uint32 {
	if bytes := r.take(4); len(bytes) == 4 {
		return binary.LittleEndian.Uint32(bytes)
	}
	return 0
}

func (r *textReader) text() string {
	text := r.take(int(r.count()))
	r.failed = r.failed || !utf8.Valid(text)
	return string(text)
}
