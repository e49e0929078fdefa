//! ClickHouse's error codes as far as we word errors of our own, and the HTTP status that ClickHouse gives each.

/// The name that ClickHouse writes in parentheses behind an error's text.
pub fn code_name(code: i32) -> &'static str {
    match code {
        6 => "CANNOT_PARSE_TEXT",
        15 => "DUPLICATE_COLUMN",
        16 => "NO_SUCH_COLUMN_IN_TABLE",
        20 => "NUMBER_OF_COLUMNS_DOESNT_MATCH",
        26 => "CANNOT_PARSE_QUOTED_STRING",
        27 => "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
        36 => "BAD_ARGUMENTS",
        43 => "ILLEGAL_TYPE_OF_ARGUMENT",
        44 => "ILLEGAL_COLUMN",
        46 => "UNKNOWN_FUNCTION",
        47 => "UNKNOWN_IDENTIFIER",
        48 => "NOT_IMPLEMENTED",
        49 => "LOGICAL_ERROR",
        50 => "UNKNOWN_TYPE",
        53 => "TYPE_MISMATCH",
        57 => "TABLE_ALREADY_EXISTS",
        60 => "UNKNOWN_TABLE",
        62 => "SYNTAX_ERROR",
        72 => "CANNOT_PARSE_NUMBER",
        73 => "UNKNOWN_FORMAT",
        74 => "CANNOT_READ_FROM_FILE_DESCRIPTOR",
        81 => "UNKNOWN_DATABASE",
        82 => "DATABASE_ALREADY_EXISTS",
        107 => "FILE_DOESNT_EXIST",
        115 => "UNKNOWN_SETTING",
        117 => "INCORRECT_DATA",
        153 => "ILLEGAL_DIVISION",
        159 => "TIMEOUT_EXCEEDED",
        164 => "READONLY",
        194 => "REQUIRED_PASSWORD",
        202 => "TOO_MANY_SIMULTANEOUS_QUERIES",
        209 => "SOCKET_TIMEOUT",
        210 => "NETWORK_ERROR",
        216 => "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING",
        229 => "QUERY_IS_TOO_LARGE",
        236 => "ABORTED",
        241 => "MEMORY_LIMIT_EXCEEDED",
        243 => "NOT_ENOUGH_SPACE",
        279 => "ALL_CONNECTION_TRIES_FAILED",
        306 => "TOO_DEEP_RECURSION",
        319 => "UNKNOWN_STATUS_OF_INSERT",
        321 => "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
        349 => "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN",
        381 => "HTTP_LENGTH_REQUIRED",
        394 => "QUERY_WAS_CANCELLED",
        396 => "TOO_MANY_ROWS_OR_BYTES",
        439 => "CANNOT_SCHEDULE_TASK",
        456 => "UNKNOWN_QUERY_PARAMETER",
        457 => "BAD_QUERY_PARAMETER",
        469 => "VIOLATED_CONSTRAINT",
        497 => "ACCESS_DENIED",
        516 => "AUTHENTICATION_FAILED",
        1000 => "POCO_EXCEPTION",
        1001 => "STD_EXCEPTION",
        _ => "UNKNOWN_EXCEPTION",
    }
}

/// The status of an answer whose error has this code, for each code as ClickHouse 26.7 answers it.
pub fn http_status(code: i32) -> u16 {
    match code {
        194 => 401,
        192 | 193 | 512 | 516 => 403,
        // What a client wrote wrong, in the statement or in its data.
        6 | 8 | 15 | 25..=27 | 36..=38 | 41 | 44 | 53 | 62 | 72 | 117 => 400,
        123 | 167 | 168 | 223 | 321 | 376 | 427 | 441 | 675 | 676 => 400,
        // What does not exist.
        46 | 47 | 50 | 56 | 60 | 63 | 73 | 78 | 81 | 115 | 152 | 336 | 511 => 404,
        159 => 408,
        381 => 411,
        229 => 413,
        779 => 415,
        48 => 501,
        76 | 209 | 439 => 503,
        _ => 500,
    }
}

/// Errors of which the server does not know, or does not say, whether the request had its effect.
pub(crate) fn leaves_outcome_open(code: i32) -> bool {
    matches!(
        code,
        159 // TIMEOUT_EXCEEDED
        | 209 // SOCKET_TIMEOUT
        | 210 // NETWORK_ERROR
        | 236 // ABORTED
        | 285 // TOO_FEW_LIVE_REPLICAS
        | 319 // UNKNOWN_STATUS_OF_INSERT
        | 394 // QUERY_WAS_CANCELLED
        | 999 // KEEPER_EXCEPTION
    )
}

/// Whether the same request may succeed a little later, without anyone changing anything.
pub(crate) fn is_passing(code: i32) -> bool {
    matches!(
        code,
        159 // TIMEOUT_EXCEEDED
        | 164 // READONLY: a server that starts or a table that lost its Keeper
        | 202 // TOO_MANY_SIMULTANEOUS_QUERIES
        | 209 // SOCKET_TIMEOUT
        | 210 // NETWORK_ERROR
        | 225 // NO_ZOOKEEPER
        | 236 // ABORTED: shutting down
        | 241 // MEMORY_LIMIT_EXCEEDED
        | 242 // TABLE_IS_READ_ONLY
        | 243 // NOT_ENOUGH_SPACE
        | 252 // TOO_MANY_PARTS
        | 279 // ALL_CONNECTION_TRIES_FAILED
        | 285 // TOO_FEW_LIVE_REPLICAS
        | 319 // UNKNOWN_STATUS_OF_INSERT
        | 667 // NOT_INITIALIZED: a replicated table that has not found its Keeper yet
        | 999 // KEEPER_EXCEPTION
    )
}

/// Whether the server doesn't know who asks.
pub(crate) fn is_about_identity(code: i32) -> bool {
    matches!(
        code,
        192 // UNKNOWN_USER
        | 193 // WRONG_PASSWORD
        | 194 // REQUIRED_PASSWORD
        | 516 // AUTHENTICATION_FAILED
    )
}

/// Errors that come of the values in some row: of reading, converting or computing them, or of a constraint. Whoever
/// writes rows has done all of that before any of them are kept.
pub(crate) fn comes_of_values(code: i32) -> bool {
    matches!(
        code,
        6 // CANNOT_PARSE_TEXT
        | 19 // SIZE_OF_FIXED_STRING_DOESNT_MATCH
        | 25 // CANNOT_PARSE_ESCAPE_SEQUENCE
        | 26 // CANNOT_PARSE_QUOTED_STRING
        | 27 // CANNOT_PARSE_INPUT_ASSERTION_FAILED
        | 36 // BAD_ARGUMENTS
        | 38 // CANNOT_PARSE_DATE
        | 41 // CANNOT_PARSE_DATETIME
        | 43 // ILLEGAL_TYPE_OF_ARGUMENT
        | 53 // TYPE_MISMATCH
        | 69 // ARGUMENT_OUT_OF_BOUND
        | 70 // CANNOT_CONVERT_TYPE
        | 72 // CANNOT_PARSE_NUMBER
        | 117 // INCORRECT_DATA
        | 128 // TOO_LARGE_ARRAY_SIZE
        | 131 // TOO_LARGE_STRING_SIZE
        | 153 // ILLEGAL_DIVISION
        | 190 // SIZES_OF_ARRAYS_DONT_MATCH
        | 248 // INVALID_PARTITION_VALUE
        | 321 // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
        | 349 // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
        | 366 // SIZES_OF_NESTED_COLUMNS_ARE_INCONSISTENT
        | 376 // CANNOT_PARSE_UUID
        | 395 // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
        | 407 // DECIMAL_OVERFLOW
        | 427 // CANNOT_COMPILE_REGEXP
        | 441 // CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING
        | 467 // CANNOT_PARSE_BOOL
        | 469 // VIOLATED_CONSTRAINT
        | 632 // UNEXPECTED_DATA_AFTER_PARSED_VALUE
        | 675 // CANNOT_PARSE_IPV4
        | 676 // CANNOT_PARSE_IPV6
        | 691 // UNKNOWN_ELEMENT_OF_ENUM
    )
}
