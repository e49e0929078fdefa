//! Takes a statement for the database apart: its text, with the settings and the format that go with it.

use windrow_adbc::SqlDatabase;
use windrow_clickhouse::ErrorCode;
use windrow_duckdb::results::Format;
use windrow_duckdb::statement::{ask, About, Asked, Kind, RequestError};
use windrow_duckdb::{not_taken, Port, Session};
use windrow_gateway::sql_backend::{Refusal, SqlStatement};

use super::install::system_view;
use super::own_table::subquery;
use super::parameter;
use super::settings::QuerySettings;

/// The format of results where nobody names one.
const DEFAULT_FORMAT: &str = "TSV";

/// A statement that can be run.
pub(crate) struct Question {
    pub(super) asked: Asked,
    pub(super) query_settings: QuerySettings,
    pub(super) format: Format,
    /// The format's name as the client wrote it, or the default format's.
    pub(super) format_name: String,
    pub(super) session: Session,
}

impl Question {
    pub(crate) fn of(database: &SqlDatabase, statement: &SqlStatement<'_>) -> Result<Question, Refusal> {
        let SqlStatement { text, user, options, by_get, .. } = *statement;
        // Settings are looked at before the text, as ClickHouse does it.
        QuerySettings::of(options, statement.native_revision, &[])?;
        let value = |name: &str, data_type: &str| {
            let given = options.query_parameters().find(|(known, _)| *known == name).map(|(_, value)| value);
            parameter(database, given, data_type)
        };
        let has_own_tables = matches!(database, SqlDatabase::DuckDb(_));
        let own_table = |table: &str| has_own_tables.then(|| (statement.own_tables)(table)).flatten().map(subquery);
        let system_table = |table: &str| system_view(database, table).or_else(|| own_table(table));
        let asked =
            ask(text, database.schema_of("default"), &system_table, &value).map_err(|error| not_asked(&error))?;
        let query_settings = QuerySettings::of(options, statement.native_revision, &asked.settings)?;
        let format_name = asked.format.as_deref().or(statement.format).unwrap_or(DEFAULT_FORMAT).to_owned();
        let unknown = || Refusal::statement(ErrorCode::UNKNOWN_FORMAT, format!("Unknown format {format_name}"));
        let format = Format::from_name(&format_name).ok_or_else(unknown)?;
        let readonly = statement.readonly || query_settings.readonly || by_get;
        if readonly && asked.kind != Kind::Reads {
            return Err(read_only(user, by_get));
        }
        if let Kind::NotTaken(why) = asked.kind {
            return Err(Refusal::exception(not_taken(why, database.version_suffix())));
        }
        if let Some(About::Foreign(word)) = &asked.about {
            return Err(Refusal::statement(
                ErrorCode::NOT_IMPLEMENTED,
                format!("{word} is ClickHouse's, and there is nothing like it here"),
            ));
        }
        let schema = database.schema_of(statement.database.unwrap_or("default")).to_owned();
        let session = Session { schema, readonly, user: user.to_owned(), port: Port::Http };
        Ok(Question { asked, query_settings, format, format_name, session })
    }
}

fn not_asked(error: &RequestError) -> Refusal {
    match error {
        RequestError::Empty => Refusal::statement(ErrorCode::SYNTAX_ERROR, "Empty query".to_owned()),
        RequestError::SeveralStatements { position } => Refusal::statement(
            ErrorCode::SYNTAX_ERROR,
            format!("Syntax error (Multi-statements are not allowed): failed at position {position}"),
        ),
        RequestError::NotSet(name) => {
            Refusal::statement(ErrorCode::UNKNOWN_QUERY_PARAMETER, format!("Substitution `{name}` is not set"))
        }
        RequestError::Wrong { name, cause } => {
            let text = format!("The value of the query parameter `{name}` cannot be used: {cause}");
            Refusal::statement(ErrorCode::BAD_QUERY_PARAMETER, text)
        }
    }
}

fn read_only(user: &str, by_get: bool) -> Refusal {
    let hint = match by_get {
        true => " For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries",
        false => "",
    };
    Refusal::statement(ErrorCode::READONLY, format!("{user}: Cannot execute query in readonly mode.{hint}"))
}
