//! Payloads that pass through: they stay the text they came as, and may all the same be joined with others.
//!
//! A table may have columns that the readers don't know, and a payload may have a meaning that only
//! ClickHouse can tell. Such payloads are gathered as they are: their texts are put one behind the other, and
//! ClickHouse reads all of it. That is safe only if ClickHouse then reads of each payload what it would have
//! read of that payload alone. So each payload is first walked through, whole, with only as much knowledge of
//! its format as it takes to see where its rows end:
//!
//! - **JSON** (`json.rs`): strict JSON, so objects and arrays end where everybody sees them end. The brackets
//!   around an array of objects, and commas behind the last one, are left out.
//! - **CSV, TSV** (`delimited.rs`): as many fields in each row as there are columns, quoted and escaped
//!   beyond doubt. Types whose values ClickHouse reads across line breaks (an array in TSV, a tuple in CSV)
//!   are looked at closer, or not taken. A first row that ClickHouse could take for a header isn't taken
//!   either.
//!
//! The text before all rows, the names of the columns, is the same for all payloads that are joined, and is
//! sent once.
//!
//! Settings that only change what a value means go along. Those that change where rows end, what is skipped
//! or how many blocks are made of a text keep payloads from being joined (`settings.rs`).
//!
//! A payload that is not taken need not be wrong: it is forwarded, alone, and ClickHouse says what it thinks
//! of it.

mod counted;
mod delimited;
mod field;
mod format;
mod header;
mod json;
mod plan;
mod rows;
mod settings;

pub use format::PassthroughFormat;
pub use plan::{Joinable, NotJoinable, PassthroughPlan};
pub use rows::PassthroughRows;
pub use settings::PassthroughSettings;
