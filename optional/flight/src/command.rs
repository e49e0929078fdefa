//! The commands that a descriptor, a ticket or an action can have.

use bytes::Bytes;
use prost::Message;
use tonic::Status;

use crate::messages::*;

/// The most bytes of a command. No person writes a longer statement.
pub(crate) const MAX_COMMAND_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Query(CommandStatementQuery),
    Update(CommandStatementUpdate),
    Ticket(TicketStatementQuery),
    PreparedQuery(CommandPreparedStatementQuery),
    PreparedUpdate(CommandPreparedStatementUpdate),
    Ingest(CommandStatementIngest),
    SqlInfo(CommandGetSqlInfo),
    XdbcTypeInfo(CommandGetXdbcTypeInfo),
    Catalogs,
    DbSchemas(CommandGetDbSchemas),
    Tables(CommandGetTables),
    TableTypes,
    PrimaryKeys(CommandGetPrimaryKeys),
    /// A query for exported or imported keys or cross references. All have the same schema, and no rows.
    ForeignKeys,
    CreatePrepared(ActionCreatePreparedStatementRequest),
    ClosePrepared(ActionClosePreparedStatementRequest),
}

impl Command {
    pub(crate) fn read(bytes: &Bytes) -> Result<Command, Status> {
        if bytes.len() > MAX_COMMAND_BYTES {
            return Err(Status::invalid_argument(format!("the command is longer than {MAX_COMMAND_BYTES} bytes")));
        }
        let any = Any::decode(bytes.clone()).map_err(|_| no_command())?;
        let Some(name) = any.type_url.strip_prefix(NAMES_BEGIN) else { return Err(no_command()) };
        let value = any.value;
        Ok(match name {
            CommandStatementQuery::NAME => Command::Query(message(value)?),
            CommandStatementUpdate::NAME => Command::Update(message(value)?),
            TicketStatementQuery::NAME => Command::Ticket(message(value)?),
            CommandPreparedStatementQuery::NAME => Command::PreparedQuery(message(value)?),
            CommandPreparedStatementUpdate::NAME => Command::PreparedUpdate(message(value)?),
            CommandStatementIngest::NAME => Command::Ingest(message(value)?),
            CommandGetSqlInfo::NAME => Command::SqlInfo(message(value)?),
            CommandGetXdbcTypeInfo::NAME => Command::XdbcTypeInfo(message(value)?),
            CommandGetCatalogs::NAME => message::<CommandGetCatalogs>(value).map(|_| Command::Catalogs)?,
            CommandGetDbSchemas::NAME => Command::DbSchemas(message(value)?),
            CommandGetTables::NAME => Command::Tables(message(value)?),
            CommandGetTableTypes::NAME => message::<CommandGetTableTypes>(value).map(|_| Command::TableTypes)?,
            CommandGetPrimaryKeys::NAME => Command::PrimaryKeys(message(value)?),
            CommandGetExportedKeys::NAME | CommandGetImportedKeys::NAME | CommandGetCrossReference::NAME => {
                message::<CommandGetCrossReference>(value).map(|_| Command::ForeignKeys)?
            }
            ActionCreatePreparedStatementRequest::NAME => Command::CreatePrepared(message(value)?),
            ActionClosePreparedStatementRequest::NAME => Command::ClosePrepared(message(value)?),
            _ => return Err(Status::unimplemented(format!("{name:?} is not supported"))),
        })
    }
}

fn message<M: Message + Default>(value: Bytes) -> Result<M, Status> {
    M::decode(value).map_err(|error| Status::invalid_argument(format!("the command can't be read: {error}")))
}

fn no_command() -> Status {
    Status::invalid_argument("this is no command of Flight SQL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<Bytes> {
        let ingest = CommandStatementIngest {
            table_definition_options: Some(TableDefinitionOptions { if_not_exist: 1, if_exists: 2 }),
            table: "t".into(),
            schema: Some("s".into()),
            temporary: true,
            ..Default::default()
        };
        let tables = CommandGetTables {
            db_schema_filter_pattern: Some("d%".into()),
            table_types: vec!["TABLE".into(), "VIEW".into()],
            include_schema: true,
            ..Default::default()
        };
        vec![
            CommandStatementQuery { query: "SELECT 'x'".into(), transaction_id: Some(Bytes::from_static(b"t")) }
                .in_any(),
            ingest.in_any(),
            tables.in_any(),
            CommandGetSqlInfo { info: vec![1, 500, 70_000] }.in_any(),
            ActionClosePreparedStatementRequest { prepared_statement_handle: Bytes::from_static(b"handle") }.in_any(),
        ]
    }

    #[test]
    fn a_command_is_read_as_it_was_written() {
        let [query, ingest, ..] = &commands()[..] else { panic!("five commands") };
        assert!(matches!(Command::read(query), Ok(Command::Query(read)) if read.query == "SELECT 'x'"));
        let Ok(Command::Ingest(read)) = Command::read(ingest) else { panic!("an ingest") };
        assert_eq!((read.table.as_str(), read.schema.as_deref(), read.temporary), ("t", Some("s"), true));
        assert_eq!(read.table_definition_options.unwrap().if_exists, 2);
    }

    #[test]
    fn what_is_cut_or_changed_is_an_error_or_another_command_and_never_a_panic() {
        let mut random = fastrand::Rng::with_seed(7);
        for command in commands() {
            for length in 0..command.len() {
                drop(Command::read(&command.slice(..length)));
            }
            for _ in 0..2_000 {
                let mut changed = command.to_vec();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..changed.len());
                    changed[at] = random.u8(..);
                }
                drop(Command::read(&changed.into()));
            }
        }
    }

    #[test]
    fn other_messages_are_refused() {
        let code = |any: Any| Command::read(&any.encode_to_vec().into()).unwrap_err().code();
        let named = |type_url: &str| Any { type_url: type_url.into(), value: Bytes::new() };
        assert_eq!(code(named("type.googleapis.com/google.protobuf.Empty")), tonic::Code::InvalidArgument);
        assert_eq!(code(named(&format!("{NAMES_BEGIN}CommandStatementSubstraitPlan"))), tonic::Code::Unimplemented);
        let huge = Bytes::from(vec![0; MAX_COMMAND_BYTES + 1]);
        assert_eq!(Command::read(&huge).unwrap_err().code(), tonic::Code::InvalidArgument);
    }
}
