//! ClickHouse's error codes as far as we word errors of our own, and the HTTP status that ClickHouse gives each.

/// The name that ClickHouse writes in parentheses behind an error's text.
pub fn code_name(code: i32) -> &'static str {
    match code {
        26 => "CANNOT_PARSE_QUOTED_STRING",
        27 => "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
        36 => "BAD_ARGUMENTS",
        48 => "NOT_IMPLEMENTED",
        60 => "UNKNOWN_TABLE",
        62 => "SYNTAX_ERROR",
        115 => "UNKNOWN_SETTING",
        159 => "TIMEOUT_EXCEEDED",
        164 => "READONLY",
        194 => "REQUIRED_PASSWORD",
        202 => "TOO_MANY_SIMULTANEOUS_QUERIES",
        209 => "SOCKET_TIMEOUT",
        210 => "NETWORK_ERROR",
        216 => "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING",
        236 => "ABORTED",
        241 => "MEMORY_LIMIT_EXCEEDED",
        279 => "ALL_CONNECTION_TRIES_FAILED",
        381 => "HTTP_LENGTH_REQUIRED",
        394 => "QUERY_WAS_CANCELLED",
        497 => "ACCESS_DENIED",
        516 => "AUTHENTICATION_FAILED",
        1000 => "POCO_EXCEPTION",
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
        | 252 // TOO_MANY_PARTS
        | 279 // ALL_CONNECTION_TRIES_FAILED
        | 285 // TOO_FEW_LIVE_REPLICAS
        | 319 // UNKNOWN_STATUS_OF_INSERT
        | 999 // KEEPER_EXCEPTION
    )
}
