package windrow

import (
	"context"
	"fmt"
	"strings"
)

// Store is what batches are sent to. The package has one over HTTP, and the module windrow.dev/go/native one
// over ClickHouse's native protocol.
type Store interface {
	// Describe says where rows for a table go. Without names of columns these are all that take values.
	Describe(ctx context.Context, table string, columns []string) (Table, error)
	// Insert stores a batch, all of it or nothing. An error of ClickHouse's is, or wraps, an *Exception; all
	// others are taken for such after which it isn't known what became of the batch. It may be called from
	// several goroutines, and must not touch the batch's rows when it has returned.
	Insert(ctx context.Context, batch Batch) error
}

// Table is what a writer has to know of its table.
type Table struct {
	Destination Destination
	// Deduplicates says whether the table remembers the ids of batches, so that a repeat after a lost answer
	// is harmless.
	Deduplicates bool
}

// Batch is rows to be stored at once.
type Batch struct {
	// ID goes along as insert_deduplication_token.
	ID          BatchID
	Destination *Destination
	Rows        Rows
	// Settings are the writer's settings for its inserts.
	Settings map[string]string
}

// Larger batches are told to be one block: otherwise a part of a batch might be stored, and the rest not.
// ClickHouse cuts at a million rows, or 256 MiB in its memory.
const (
	blockRows  = 100_000
	blockBytes = 32 << 20
)

// InsertSettings are the settings that a store sends with the batch: the writer's, and those that make it be
// stored whole and once.
func (b Batch) InsertSettings() map[string]string {
	settings := map[string]string{"async_insert": "0", "insert_deduplication_token": b.ID.String()}
	if b.Rows.Count() > blockRows || len(b.Rows.Bytes) > blockBytes {
		rows := fmt.Sprint(b.Rows.Count())
		settings["max_insert_block_size"] = rows
		settings["min_insert_block_size_rows"] = rows
		settings["min_insert_block_size_bytes"] = "0"
	}
	for name, value := range b.Settings {
		settings[name] = value
	}
	return settings
}

// ColumnsQuery is the question for a table's columns, for stores: it has the parameters d (database, or
// empty) and t (table), and answers database, name, type and kind of default of each column. Choose makes a
// table of the answers.
const ColumnsQuery = "SELECT database, name, type, default_kind FROM system.columns WHERE table = {t:String} " +
	"AND database = if({d:String} = '', currentDatabase(), {d:String}) ORDER BY position"

// WindowQuery is the question whether a table has a window of deduplication, for stores: it has the same
// parameters, and answers one number, 0 or 1.
const WindowQuery = `SELECT toUInt8(engine LIKE 'Replicated%' OR engine LIKE 'Shared%' OR ` +
	`toUInt64OrZero(extract(create_table_query, 'non_replicated_deduplication_window = (\\d+)')) > 0) ` +
	"FROM system.tables WHERE name = {t:String} AND database = if({d:String} = '', currentDatabase(), {d:String})"

// Column is a table's column as ColumnsQuery answers it.
type Column struct {
	Database    string
	Name        string
	Type        string
	DefaultKind string
}

// SplitTable takes `database.table` apart; the database is empty if none is named.
func SplitTable(name string) (database, table string) {
	if before, after, isNamed := strings.Cut(name, "."); isNamed {
		return before, after
	}
	return "", name
}

// Choose gives the destination of rows with the named columns, or with all that take values.
func Choose(table string, described []Column, names []string) (Destination, error) {
	_, table = SplitTable(table)
	if len(described) == 0 {
		return Destination{}, fmt.Errorf("windrow: there is no table %s, or its columns may not be seen", table)
	}
	chosen := Destination{Database: described[0].Database, Table: table}
	add := func(column Column) {
		chosen.Columns = append(chosen.Columns, column.Name)
		chosen.Types = append(chosen.Types, column.Type)
	}
	if len(names) == 0 {
		for _, column := range described {
			if column.takesValues() {
				add(column)
			}
		}
		return chosen, nil
	}
	byName := map[string]Column{}
	for _, column := range described {
		byName[column.Name] = column
	}
	for _, name := range names {
		column, isThere := byName[name]
		if !isThere {
			return Destination{}, fmt.Errorf("windrow: table %s has no column %s", table, name)
		}
		add(column)
	}
	return chosen, nil
}

func (c Column) takesValues() bool {
	switch c.DefaultKind {
	case "MATERIALIZED", "ALIAS", "EPHEMERAL":
		return false
	}
	return true
}
