package windrow

import (
	"strconv"
	"strings"
)

// Exception is an error as ClickHouse words it.
type Exception struct {
	Code int
	// Text is the whole text as it came. It may hold values of rows.
	Text string
}

// Error gives ClickHouse's text.
func (e *Exception) Error() string { return e.Text }

// Row gives the row, counted from 1, that the error names, or 0. A text may hold anything that a client sent,
// so this is a hint.
func (e *Exception) Row() int {
	before, at := "(at row ", strings.LastIndex(e.Text, "(at row ")
	if e.Code == 469 {
		// Constraint `c` for table d.t is violated at row 8. Expression: ... The values come last: the first
		// is meant.
		before = " is violated at row "
		at = strings.Index(e.Text, before)
	}
	if at < 0 {
		return 0
	}
	digits := e.Text[at+len(before):]
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(digits)
	}
	row, err := strconv.Atoi(digits[:end])
	if err != nil {
		return 0
	}
	return row
}

// isOfAView says whether a materialized view raised it, or a table that a view writes to. ClickHouse says so
// at the end of the text, where only names follow. The same words in a value of a row have a closing quote
// behind them.
func (e *Exception) isOfAView() bool {
	const said = "while pushing to view"
	at := strings.LastIndex(e.Text, said)
	if at < 0 {
		return false
	}
	names := e.Text[at+len(said):]
	return !strings.Contains(names, "'") || strings.Contains(names, "`")
}

// isAboutPartitions says that a block spreads over more partitions than one INSERT may write. It has the code
// of "too many parts", which passes; this doesn't.
func (e *Exception) isAboutPartitions() bool {
	return e.Code == 252 && strings.Contains(e.Text, "partitions")
}

// isOfTheStructure says that the types in front of the rows are not the table's any more. It has a code of
// bad values.
func (e *Exception) isOfTheStructure() bool {
	return e.Code == 117 && strings.Contains(e.Text, ": (while reading header)")
}

// passingCodes are of errors after which the same request may succeed a little later without anyone changing
// anything, or of which the server doesn't know whether the request had its effect.
var passingCodes = codes(
	159, // TIMEOUT_EXCEEDED
	164, // READONLY: a server that starts, or a table that lost its Keeper
	202, // TOO_MANY_SIMULTANEOUS_QUERIES
	209, // SOCKET_TIMEOUT
	210, // NETWORK_ERROR
	225, // NO_ZOOKEEPER
	236, // ABORTED: shutting down
	241, // MEMORY_LIMIT_EXCEEDED
	242, // TABLE_IS_READ_ONLY
	243, // NOT_ENOUGH_SPACE
	252, // TOO_MANY_PARTS
	279, // ALL_CONNECTION_TRIES_FAILED
	285, // TOO_FEW_LIVE_REPLICAS
	319, // UNKNOWN_STATUS_OF_INSERT
	394, // QUERY_WAS_CANCELLED
	667, // NOT_INITIALIZED: a replicated table that has not found its Keeper yet
	999, // KEEPER_EXCEPTION
)

// valueCodes are of errors that come of the values in some row: of reading, converting or computing them, or
// of a constraint. ClickHouse has done all of that before any row of the batch is kept.
var valueCodes = codes(
	6,   // CANNOT_PARSE_TEXT
	19,  // SIZE_OF_FIXED_STRING_DOESNT_MATCH
	25,  // CANNOT_PARSE_ESCAPE_SEQUENCE
	26,  // CANNOT_PARSE_QUOTED_STRING
	27,  // CANNOT_PARSE_INPUT_ASSERTION_FAILED
	36,  // BAD_ARGUMENTS
	38,  // CANNOT_PARSE_DATE
	41,  // CANNOT_PARSE_DATETIME
	43,  // ILLEGAL_TYPE_OF_ARGUMENT
	53,  // TYPE_MISMATCH
	69,  // ARGUMENT_OUT_OF_BOUND
	70,  // CANNOT_CONVERT_TYPE
	72,  // CANNOT_PARSE_NUMBER
	117, // INCORRECT_DATA
	128, // TOO_LARGE_ARRAY_SIZE
	131, // TOO_LARGE_STRING_SIZE
	153, // ILLEGAL_DIVISION
	190, // SIZES_OF_ARRAYS_DONT_MATCH
	248, // INVALID_PARTITION_VALUE
	321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
	349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
	366, // SIZES_OF_NESTED_COLUMNS_ARE_INCONSISTENT
	376, // CANNOT_PARSE_UUID
	395, // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	407, // DECIMAL_OVERFLOW
	427, // CANNOT_COMPILE_REGEXP
	441, // CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING
	467, // CANNOT_PARSE_BOOL
	469, // VIOLATED_CONSTRAINT
	632, // UNEXPECTED_DATA_AFTER_PARSED_VALUE
	675, // CANNOT_PARSE_IPV4
	676, // CANNOT_PARSE_IPV6
	691, // UNKNOWN_ELEMENT_OF_ENUM
)

// refusingCodes are of errors of the statement, the account or the table, whatever the rows are.
var refusingCodes = codes(
	10,  // NOT_FOUND_COLUMN_IN_BLOCK
	16,  // NO_SUCH_COLUMN_IN_TABLE
	44,  // ILLEGAL_COLUMN
	47,  // UNKNOWN_IDENTIFIER
	48,  // NOT_IMPLEMENTED
	50,  // UNKNOWN_TYPE
	60,  // UNKNOWN_TABLE
	62,  // SYNTAX_ERROR
	73,  // UNKNOWN_FORMAT
	81,  // UNKNOWN_DATABASE
	115, // UNKNOWN_SETTING
	192, // UNKNOWN_USER
	193, // WRONG_PASSWORD
	194, // REQUIRED_PASSWORD
	291, // DATABASE_ACCESS_DENIED
	452, // SETTING_CONSTRAINT_VIOLATION
	497, // ACCESS_DENIED
	511, // UNKNOWN_ROLE
	516, // AUTHENTICATION_FAILED
)

func codes(all ...int) map[int]bool {
	set := make(map[int]bool, len(all))
	for _, code := range all {
		set[code] = true
	}
	return set
}
