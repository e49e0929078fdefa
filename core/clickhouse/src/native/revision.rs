//! Revisions of the protocol, each with the first that writes a certain thing. The names are those of
//! ClickHouse's `ProtocolDefines.h`, without their prefix.

/// The newest revision that is spoken here. The next step but three (54492) changes the layout of every
/// String column.
pub const NEWEST: u64 = 54_488;
/// The oldest revision. Older clients write their settings as binary values of types that only their server knows.
pub const OLDEST: u64 = SETTINGS_SERIALIZED_AS_STRINGS;

pub const VERSION_PATCH: u64 = 54_401;
pub const SETTINGS_SERIALIZED_AS_STRINGS: u64 = 54_429;
pub const INTERSERVER_SECRET: u64 = 54_441;
pub const OPENTELEMETRY: u64 = 54_442;
pub const X_FORWARDED_FOR: u64 = 54_443;
pub const REFERER: u64 = 54_447;
pub const DISTRIBUTED_DEPTH: u64 = 54_448;
pub const INITIAL_QUERY_START_TIME: u64 = 54_449;
pub const PARALLEL_REPLICAS: u64 = 54_453;
pub const CUSTOM_SERIALIZATION: u64 = 54_454;
pub const PROFILE_EVENTS_IN_INSERT: u64 = 54_456;
pub const ADDENDUM: u64 = 54_458;
pub const PARAMETERS: u64 = 54_459;
pub const SERVER_QUERY_TIME_IN_PROGRESS: u64 = 54_460;
pub const PASSWORD_COMPLEXITY_RULES: u64 = 54_461;
pub const INTERSERVER_SECRET_V2: u64 = 54_462;
pub const TOTAL_BYTES_IN_PROGRESS: u64 = 54_463;
pub const TABLE_READ_ONLY_CHECK: u64 = 54_467;
pub const ROWS_BEFORE_AGGREGATION: u64 = 54_469;
pub const CHUNKED_PACKETS: u64 = 54_470;
pub const VERSIONED_PARALLEL_REPLICAS: u64 = 54_471;
pub const INTERSERVER_EXTERNALLY_GRANTED_ROLES: u64 = 54_472;
pub const SERVER_SETTINGS: u64 = 54_474;
pub const QUERY_AND_LINE_NUMBERS: u64 = 54_475;
pub const JWT_IN_INTERSERVER: u64 = 54_476;
pub const QUERY_PLAN_SERIALIZATION: u64 = 54_477;
pub const VERSIONED_CLUSTER_FUNCTION: u64 = 54_479;
pub const OUT_OF_ORDER_BUCKETS: u64 = 54_480;
pub const COMPRESSED_LOGS_PROFILE_EVENTS_COLUMNS: u64 = 54_481;
pub const NULLABLE_SPARSE_SERIALIZATION: u64 = 54_483;
pub const PROGRESS_IN_ASYNC_INSERT: u64 = 54_484;
pub const CLIENT_AGENT: u64 = 54_485;
pub const INTERNAL_QUERY_FLAG: u64 = 54_486;
pub const INTERSERVER_CURRENT_ROLES: u64 = 54_488;
