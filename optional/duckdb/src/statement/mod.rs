//! DuckDB's SQL, as far as a gateway that speaks ClickHouse's interface must understand it: the kind of a
//! statement, the clauses of ClickHouse at its end, and the spellings of ClickHouse in it that DuckDB would
//! not read.
//!
//! DuckDB's lexical rules are not ClickHouse's: a backslash means nothing in `'x'`, comments begin with `--`
//! and `/*` only, and `$tag$` quotes. Texts are parsed into tokens only: DuckDB itself says what it does not
//! understand.

mod asked;
mod clauses;
mod kind;
mod not_taken;
mod rewrite;
mod windrows;

pub use asked::{ask, About, Asked, Parameter, RequestError};
pub use kind::{first_word, kind_of, Kind};
pub use not_taken::NotTaken;
pub use windrows::WINDROWS_SCHEMAS;
