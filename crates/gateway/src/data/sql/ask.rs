//! What a request asks of the database: its text taken apart, with the settings and the format that go with it.

use windrow_adbc::SqlDatabase;
use windrow_clickhouse::ErrorCode;
use windrow_duckdb::results::Format;
use windrow_duckdb::{not_taken, Port, Session};
use windrow_sql::{ask, About, Asked, Kind, NotAsked};

use super::parameter;
use super::settings::Wishes;
use crate::data::request::Request;
use crate::error::Refusal;

/// The format of results where nobody names one.
const DEFAULT_FORMAT: &str = "TSV";

/// Whose request it is.
pub(super) struct Who<'a> {
    pub(super) user: &'a str,
    pub(super) readonly: bool,
}

/// A request that can be run.
pub(super) struct Question {
    pub(super) asked: Asked,
    pub(super) wishes: Wishes,
    pub(super) format: Format,
    /// As the client named it.
    pub(super) format_name: String,
    pub(super) session: Session,
}

impl Question {
    /// `system_table` gives what stands for a table of `system`.
    pub(super) fn of(
        request: &Request<'_>,
        text: &str,
        database: &SqlDatabase,
        who: &Who<'_>,
        system_table: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Question, Refusal> {
        let Who { user, readonly: readonly_user } = *who;
        // Settings are looked at before the text, as ClickHouse does it.
        Wishes::of(request, &[])?;
        let value = |name: &str, data_type: &str| {
            let given = request.params.iter().find(|param| param.name().strip_prefix("param_") == Some(name));
            parameter(database, given.and_then(|param| param.text()), data_type)
        };
        let asked =
            ask(text, database.schema_of("default"), system_table, &value).map_err(|error| not_asked(&error))?;
        let wishes = Wishes::of(request, &asked.settings)?;
        let header = request.head.field_str("x-clickhouse-format").filter(|name| !name.is_empty());
        let default = || header.or_else(|| request.param_str("default_format")).filter(|name| !name.is_empty());
        let format_name = asked.format.clone().or_else(|| default().map(str::to_owned));
        let format_name = format_name.unwrap_or_else(|| DEFAULT_FORMAT.to_owned());
        let unknown = || Refusal::statement(ErrorCode::UNKNOWN_FORMAT, format!("Unknown format {format_name}"));
        let format = Format::from_name(&format_name).ok_or_else(unknown)?;
        let by_get = !request.is_post();
        let readonly = readonly_user || wishes.readonly || by_get;
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
        let schema = database.schema_of(request.database().unwrap_or("default")).to_owned();
        let session = Session { schema, readonly, user: user.to_owned(), port: Port::Http };
        Ok(Question { asked, wishes, format, format_name, session })
    }
}

fn not_asked(error: &NotAsked) -> Refusal {
    match error {
        NotAsked::Empty => Refusal::statement(ErrorCode::SYNTAX_ERROR, "Empty query".to_owned()),
        NotAsked::SeveralStatements { position } => Refusal::statement(
            ErrorCode::SYNTAX_ERROR,
            format!("Syntax error (Multi-statements are not allowed): failed at position {position}"),
        ),
        NotAsked::NotSet(name) => {
            Refusal::statement(ErrorCode::UNKNOWN_QUERY_PARAMETER, format!("Substitution `{name}` is not set"))
        }
        NotAsked::Wrong { name, cause } => {
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
