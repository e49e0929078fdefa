//! ClickHouse's error codes, as far as Windrow raises them or tells them apart.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A number that ClickHouse gives an error. A server may send any; those that are told apart have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(i32);

/// Meaning of a code for the request that ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The server does not know the user.
    Identity,
    /// The values of some row caused the error: reading, converting or computing them, or a constraint. The
    /// server does all of that before it keeps any row.
    Values,
    /// The same request may succeed a little later, without anyone changing anything.
    Passing,
    /// The server does not know, or does not say, whether the request had its effect.
    OutcomeOpen,
}

/// All that is known about a code.
struct CodeFacts {
    number: i32,
    name: &'static str,
    /// HTTP status of an answer with this error, as ClickHouse 26.7 sends it.
    status: u16,
    meanings: &'static [Meaning],
}

macro_rules! error_codes {
    ($($number:literal, $name:ident, $status:literal, [$($meaning:ident),*];)*) => {
        impl ErrorCode {
            $(pub const $name: ErrorCode = ErrorCode($number);)*
        }

        /// The listed codes, ordered by number.
        const KNOWN: &[CodeFacts] = &[$(CodeFacts {
            number: $number,
            name: stringify!($name),
            status: $status,
            meanings: &[$(Meaning::$meaning),*],
        }),*];
    };
}

// The number, its name, the status in HTTP, and what it means. OK stands for an error without a code. READONLY passes,
// since a server that starts answers with it, and so does a table that has lost its Keeper. NOT_INITIALIZED comes of a
// replicated table without its Keeper, ABORTED of a server that shuts down.
error_codes! {
    0, OK, 500, [];
    1, UNSUPPORTED_METHOD, 500, [];
    6, CANNOT_PARSE_TEXT, 400, [Values];
    8, THERE_IS_NO_COLUMN, 400, [];
    9, SIZES_OF_COLUMNS_DOESNT_MATCH, 500, [];
    10, NOT_FOUND_COLUMN_IN_BLOCK, 500, [];
    15, DUPLICATE_COLUMN, 400, [];
    16, NO_SUCH_COLUMN_IN_TABLE, 500, [];
    19, SIZE_OF_FIXED_STRING_DOESNT_MATCH, 500, [Values];
    20, NUMBER_OF_COLUMNS_DOESNT_MATCH, 500, [];
    25, CANNOT_PARSE_ESCAPE_SEQUENCE, 400, [Values];
    26, CANNOT_PARSE_QUOTED_STRING, 400, [Values];
    27, CANNOT_PARSE_INPUT_ASSERTION_FAILED, 400, [Values];
    33, CANNOT_READ_ALL_DATA, 500, [];
    36, BAD_ARGUMENTS, 400, [Values];
    37, UNKNOWN_ELEMENT_IN_AST, 400, [];
    38, CANNOT_PARSE_DATE, 400, [Values];
    40, CHECKSUM_DOESNT_MATCH, 500, [];
    41, CANNOT_PARSE_DATETIME, 400, [Values];
    43, ILLEGAL_TYPE_OF_ARGUMENT, 500, [Values];
    44, ILLEGAL_COLUMN, 400, [];
    46, UNKNOWN_FUNCTION, 404, [];
    47, UNKNOWN_IDENTIFIER, 404, [];
    48, NOT_IMPLEMENTED, 501, [];
    49, LOGICAL_ERROR, 500, [];
    50, UNKNOWN_TYPE, 404, [];
    53, TYPE_MISMATCH, 400, [Values];
    56, UNKNOWN_STORAGE, 404, [];
    57, TABLE_ALREADY_EXISTS, 500, [];
    60, UNKNOWN_TABLE, 404, [];
    62, SYNTAX_ERROR, 400, [];
    63, UNKNOWN_AGGREGATE_FUNCTION, 404, [];
    69, ARGUMENT_OUT_OF_BOUND, 500, [Values];
    70, CANNOT_CONVERT_TYPE, 500, [Values];
    72, CANNOT_PARSE_NUMBER, 400, [Values];
    73, UNKNOWN_FORMAT, 404, [];
    74, CANNOT_READ_FROM_FILE_DESCRIPTOR, 500, [];
    75, CANNOT_WRITE_TO_FILE_DESCRIPTOR, 500, [];
    76, CANNOT_OPEN_FILE, 503, [];
    78, UNKNOWN_TYPE_OF_QUERY, 404, [];
    81, UNKNOWN_DATABASE, 404, [];
    82, DATABASE_ALREADY_EXISTS, 500, [];
    99, UNKNOWN_PACKET_FROM_CLIENT, 500, [];
    101, UNEXPECTED_PACKET_FROM_CLIENT, 500, [];
    107, FILE_DOESNT_EXIST, 500, [];
    115, UNKNOWN_SETTING, 404, [];
    117, INCORRECT_DATA, 400, [Values];
    123, UNKNOWN_TYPE_OF_AST_NODE, 400, [];
    128, TOO_LARGE_ARRAY_SIZE, 500, [Values];
    131, TOO_LARGE_STRING_SIZE, 500, [Values];
    152, UNKNOWN_DIRECTION_OF_SORTING, 404, [];
    153, ILLEGAL_DIVISION, 500, [Values];
    159, TIMEOUT_EXCEEDED, 408, [Passing, OutcomeOpen];
    164, READONLY, 500, [Passing];
    167, TOO_DEEP_AST, 400, [];
    168, TOO_BIG_AST, 400, [];
    190, SIZES_OF_ARRAYS_DONT_MATCH, 500, [Values];
    192, UNKNOWN_USER, 403, [Identity];
    193, WRONG_PASSWORD, 403, [Identity];
    194, REQUIRED_PASSWORD, 401, [Identity];
    201, QUOTA_EXCEEDED, 500, [];
    202, TOO_MANY_SIMULTANEOUS_QUERIES, 500, [Passing];
    209, SOCKET_TIMEOUT, 503, [Passing, OutcomeOpen];
    210, NETWORK_ERROR, 500, [Passing, OutcomeOpen];
    216, QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING, 500, [];
    223, UNEXPECTED_AST_STRUCTURE, 400, [];
    225, NO_ZOOKEEPER, 500, [Passing];
    229, QUERY_IS_TOO_LARGE, 413, [];
    236, ABORTED, 500, [Passing, OutcomeOpen];
    241, MEMORY_LIMIT_EXCEEDED, 500, [Passing];
    242, TABLE_IS_READ_ONLY, 500, [Passing];
    243, NOT_ENOUGH_SPACE, 500, [Passing];
    248, INVALID_PARTITION_VALUE, 500, [Values];
    252, TOO_MANY_PARTS, 500, [Passing];
    271, CANNOT_DECOMPRESS, 500, [];
    279, ALL_CONNECTION_TRIES_FAILED, 500, [Passing];
    285, TOO_FEW_LIVE_REPLICAS, 500, [Passing, OutcomeOpen];
    291, DATABASE_ACCESS_DENIED, 500, [];
    306, TOO_DEEP_RECURSION, 500, [];
    319, UNKNOWN_STATUS_OF_INSERT, 500, [Passing, OutcomeOpen];
    321, VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE, 400, [Values];
    336, UNKNOWN_DATABASE_ENGINE, 404, [];
    344, SUPPORT_IS_DISABLED, 500, [];
    349, CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN, 500, [Values];
    366, SIZES_OF_NESTED_COLUMNS_ARE_INCONSISTENT, 500, [Values];
    376, CANNOT_PARSE_UUID, 400, [Values];
    381, HTTP_LENGTH_REQUIRED, 411, [];
    394, QUERY_WAS_CANCELLED, 500, [OutcomeOpen];
    395, FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, 500, [Values];
    396, TOO_MANY_ROWS_OR_BYTES, 500, [];
    407, DECIMAL_OVERFLOW, 500, [Values];
    427, CANNOT_COMPILE_REGEXP, 400, [Values];
    432, UNKNOWN_CODEC, 500, [];
    439, CANNOT_SCHEDULE_TASK, 503, [];
    441, CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING, 400, [Values];
    452, SETTING_CONSTRAINT_VIOLATION, 500, [];
    456, UNKNOWN_QUERY_PARAMETER, 500, [];
    457, BAD_QUERY_PARAMETER, 500, [];
    467, CANNOT_PARSE_BOOL, 500, [Values];
    469, VIOLATED_CONSTRAINT, 500, [Values];
    497, ACCESS_DENIED, 500, [];
    499, S3_ERROR, 500, [];
    511, UNKNOWN_ROLE, 404, [];
    512, SET_NON_GRANTED_ROLE, 403, [];
    516, AUTHENTICATION_FAILED, 403, [Identity];
    632, UNEXPECTED_DATA_AFTER_PARSED_VALUE, 500, [Values];
    667, NOT_INITIALIZED, 500, [Passing];
    675, CANNOT_PARSE_IPV4, 400, [Values];
    676, CANNOT_PARSE_IPV6, 400, [Values];
    691, UNKNOWN_ELEMENT_OF_ENUM, 500, [Values];
    779, UNSUPPORTED_MEDIA_TYPE, 415, [];
    999, KEEPER_EXCEPTION, 500, [Passing, OutcomeOpen];
    1000, POCO_EXCEPTION, 500, [];
    1001, STD_EXCEPTION, 500, [];
}

impl ErrorCode {
    pub fn from_number(number: i32) -> ErrorCode {
        ErrorCode(number)
    }

    pub fn number(self) -> i32 {
        self.0
    }

    /// Returns the name that ClickHouse writes in parentheses after an error's text, or `None` for a code
    /// that is not listed here.
    pub fn name(self) -> Option<&'static str> {
        self.known().map(|known| known.name)
    }

    /// Returns the HTTP status of an answer with this error.
    pub fn http_status(self) -> u16 {
        self.known().map_or(500, |known| known.status)
    }

    /// Says whether the code means that the server does not know the user.
    pub fn is_about_identity(self) -> bool {
        self.means(Meaning::Identity)
    }

    /// Says whether the table, or its database, is missing.
    pub fn says_no_such_table(self) -> bool {
        matches!(self, ErrorCode::UNKNOWN_TABLE | ErrorCode::UNKNOWN_DATABASE)
    }

    pub(crate) fn comes_of_values(self) -> bool {
        self.means(Meaning::Values)
    }

    pub(crate) fn is_passing(self) -> bool {
        self.means(Meaning::Passing)
    }

    pub(crate) fn leaves_outcome_open(self) -> bool {
        self.means(Meaning::OutcomeOpen)
    }

    fn means(self, meaning: Meaning) -> bool {
        self.known().is_some_and(|known| known.meanings.contains(&meaning))
    }

    fn known(self) -> Option<&'static CodeFacts> {
        let at = KNOWN.binary_search_by_key(&self.0, |known| known.number).ok()?;
        Some(&KNOWN[at])
    }
}

impl FromStr for ErrorCode {
    type Err = ParseIntError;

    fn from_str(digits: &str) -> Result<ErrorCode, ParseIntError> {
        Ok(ErrorCode(digits.parse()?))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_code_is_found() {
        assert!(KNOWN.is_sorted_by(|one, next| one.number < next.number), "each number once, in their order");
        for known in KNOWN {
            assert_eq!(ErrorCode(known.number).name(), Some(known.name));
        }
        assert_eq!(ErrorCode::UNKNOWN_TABLE.name(), Some("UNKNOWN_TABLE"));
    }

    #[test]
    fn a_code_that_is_not_listed_means_nothing() {
        let code = ErrorCode::from_number(i32::MIN);
        assert_eq!((code.name(), code.http_status()), (None, 500));
        assert!(
            !code.is_passing() && !code.leaves_outcome_open() && !code.comes_of_values() && !code.is_about_identity()
        );
    }
}
