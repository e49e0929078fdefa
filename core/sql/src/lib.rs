//! ClickHouse's SQL, as far as a gateway must understand it: which texts are inserts that may be gathered and
//! where their data begins, which statements change tables, sessions or access, and which of them read the
//! gateway's own system tables.
//!
//! Pure functions on bytes. A statement that is not understood is never guessed at: it is
//! [`Statement::Other`], which is forwarded.

mod classify;
mod cursor;
mod ddl;
mod insert;
mod lexer;
mod literal;
mod names;
mod other;
mod outline;
mod own_tables;
mod quote;
mod reads;
mod row_removal;
mod system;
mod view;

pub use classify::{classify, classify_prefix, Statement};
pub use insert::{blank_settings, settings_of_set, Identifier, InsertForm, InsertStatement, InsertTable};
pub use lexer::{next_duckdb_token, tokens, Token, TokenKind};
pub use literal::unquote_string;
pub use names::{column_names, TableName};
pub use other::{DdlScope, Leading, OtherStatement};
pub use outline::InsertOutline;
pub use own_tables::{own_table_references, without_system_prefix, OwnTableReference, OwnTableUse, OwnTables};
pub use quote::{backquote, backquote_if_need, quote_string, unquoted_names, Dialect};
pub use reads::only_reads;
pub use row_removal::removes_rows;
pub use view::{view_target, ViewTarget};
