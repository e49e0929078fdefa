//! Which refusals concern the batch as a whole, and which may be one insert's fault.

/// Whether every insert of a batch would get this error, so that looking for a culprit is in vain.
pub(crate) fn concerns_whole_batch(code: i32) -> bool {
    matches!(
        code,
        16 // NO_SUCH_COLUMN_IN_TABLE
        | 20 // NUMBER_OF_COLUMNS_DOESNT_MATCH
        | 44 // ILLEGAL_COLUMN
        | 48 // NOT_IMPLEMENTED
        | 53 // TYPE_MISMATCH
        | 60 // UNKNOWN_TABLE
        | 73 // UNKNOWN_FORMAT
        | 81 // UNKNOWN_DATABASE
        | 115 // UNKNOWN_SETTING
        | 192 // UNKNOWN_USER
        | 193 // WRONG_PASSWORD
        | 194 // REQUIRED_PASSWORD
        | 201 // QUOTA_EXCEEDED
        | 497 // ACCESS_DENIED
        | 511 // UNKNOWN_ROLE
        | 516 // AUTHENTICATION_FAILED
    )
}

/// Whether the error says that what we knew of the table is no longer so.
pub(crate) fn shows_stale_schema(code: i32) -> bool {
    matches!(code, 10 | 16 | 20 | 44 | 47 | 53 | 60 | 81)
}

/// Stores that one batch may take to find its culprits. One culprit among `n` inserts takes about 2 log2(n); a batch full of
/// culprits is given up here, so that a flood of bad inserts can't become a flood of tiny parts.
pub(crate) const MAX_STORES_PER_BATCH: u32 = 128;
