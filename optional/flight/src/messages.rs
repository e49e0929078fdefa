//! The messages of Flight SQL that are used here, with the field numbers of its protocol. Each travels in an
//! [`Any`], which names it.

use bytes::Bytes;
use prost::Message;

/// The text that every message's name begins with.
pub(crate) const NAMES_BEGIN: &str = "type.googleapis.com/arrow.flight.protocol.sql.";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

/// A message of Flight SQL, with its name.
pub(crate) trait Named: Message + Default {
    const NAME: &'static str;

    fn in_any(&self) -> Bytes {
        let any = Any { type_url: format!("{NAMES_BEGIN}{}", Self::NAME), value: self.encode_to_vec().into() };
        any.encode_to_vec().into()
    }
}

macro_rules! named {
    ($($message:ident),* $(,)?) => {
        $(impl Named for $message { const NAME: &'static str = stringify!($message); })*
    };
}

named!(
    ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult,
    CommandGetCatalogs,
    CommandGetCrossReference,
    CommandGetDbSchemas,
    CommandGetExportedKeys,
    CommandGetImportedKeys,
    CommandGetPrimaryKeys,
    CommandGetSqlInfo,
    CommandGetTableTypes,
    CommandGetTables,
    CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate,
    CommandStatementIngest,
    CommandStatementQuery,
    CommandStatementUpdate,
    DoPutPreparedStatementResult,
    DoPutUpdateResult,
    TicketStatementQuery,
);

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandStatementQuery {
    #[prost(string, tag = "1")]
    pub(crate) query: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) transaction_id: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandStatementUpdate {
    #[prost(string, tag = "1")]
    pub(crate) query: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) transaction_id: Option<Bytes>,
}

/// A ticket for the rows of a statement.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TicketStatementQuery {
    /// The statement itself. Nothing is kept for a ticket, and a client that shows one runs the statement
    /// with its own rights.
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) statement_handle: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandPreparedStatementQuery {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) prepared_statement_handle: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandPreparedStatementUpdate {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) prepared_statement_handle: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActionCreatePreparedStatementRequest {
    #[prost(string, tag = "1")]
    pub(crate) query: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) transaction_id: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActionCreatePreparedStatementResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) prepared_statement_handle: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) dataset_schema: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) parameter_schema: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActionClosePreparedStatementRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) prepared_statement_handle: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DoPutUpdateResult {
    #[prost(int64, tag = "1")]
    pub(crate) record_count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DoPutPreparedStatementResult {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) prepared_statement_handle: Option<Bytes>,
}

/// A command to ingest rows into a table, all or none.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandStatementIngest {
    #[prost(message, optional, tag = "1")]
    pub(crate) table_definition_options: Option<TableDefinitionOptions>,
    #[prost(string, tag = "2")]
    pub(crate) table: String,
    #[prost(string, optional, tag = "3")]
    pub(crate) schema: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(crate) catalog: Option<String>,
    #[prost(bool, tag = "5")]
    pub(crate) temporary: bool,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(crate) transaction_id: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TableDefinitionOptions {
    /// Action for a table that does not exist. 1: create it. 2: fail.
    #[prost(int32, tag = "1")]
    pub(crate) if_not_exist: i32,
    /// Action for a table that exists. 1: fail. 2: append. 3: replace.
    #[prost(int32, tag = "2")]
    pub(crate) if_exists: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetSqlInfo {
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) info: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetXdbcTypeInfo {
    #[prost(int32, optional, tag = "1")]
    pub(crate) data_type: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetCatalogs {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetDbSchemas {
    #[prost(string, optional, tag = "1")]
    pub(crate) catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) db_schema_filter_pattern: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetTables {
    #[prost(string, optional, tag = "1")]
    pub(crate) catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) db_schema_filter_pattern: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) table_name_filter_pattern: Option<String>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) table_types: Vec<String>,
    #[prost(bool, tag = "5")]
    pub(crate) include_schema: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetTableTypes {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetPrimaryKeys {
    #[prost(string, optional, tag = "1")]
    pub(crate) catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) db_schema: Option<String>,
    #[prost(string, tag = "3")]
    pub(crate) table: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetExportedKeys {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetImportedKeys {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommandGetCrossReference {}
