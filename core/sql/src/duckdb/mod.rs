//! DuckDB's SQL, as far as a gateway that speaks ClickHouse's interface must understand it: what a statement does,
//! which of ClickHouse's clauses stand at its end, and which of ClickHouse's spellings in it DuckDB would not read.
//!
//! DuckDB's lexical rules are not ClickHouse's: a backslash means nothing in `'x'`, comments begin with `--` and `/*`
//! only, and `$tag$` quotes. Nothing is parsed beyond tokens: what DuckDB does not understand it says itself.

mod asked;
mod clauses;
mod kind;
mod not_taken;
mod rewrite;
mod windrows;

pub use asked::{ask, About, Asked, NotAsked, Parameter};
pub use kind::{first_word, kind_of, Kind};
pub use not_taken::NotTaken;
pub use windrows::WINDROWS_SCHEMAS;
