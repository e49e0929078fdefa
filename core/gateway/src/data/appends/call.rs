//! The action that a request to an append asks for, by its path and its parameters.

use windrow_append::AppendId;
use windrow_http::Method;

use crate::data::request::Request;
use crate::error::Refusal;
use windrow_sql::{column_names, TableName};

const PREFIX: &str = "/windrow/v1/appends";

/// Says whether a path belongs to appends.
pub(crate) fn is_of_appends(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open,
    List,
    Status(AppendId),
    Abort(AppendId),
    Put(AppendId, u64),
    Commit(AppendId),
}

/// The form of a batch's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    ArrowStream,
    Native,
}

/// The table that is appended to, and how.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) table: TableName,
    pub(super) columns: Option<Vec<String>>,
    pub(super) ordered: bool,
    pub(super) source: Option<String>,
}

const PARAMETERS: [&str; 8] = ["table", "columns", "id", "ordered", "source", "format", "batches", "database"];
const MAX_SOURCE_BYTES: usize = 128;
/// Parameters that say who asks, and how. Other interfaces have them as well.
const OTHERS: [&str; 5] = ["user", "password", "role", "query_id", "decompress"];

pub(super) fn call(request: &Request<'_>) -> Result<Call, Refusal> {
    let unknown = || Refusal::unknown_path(request.head.method().as_str(), request.path);
    let rest = request.path.strip_prefix(PREFIX).ok_or_else(unknown)?;
    let known = |name: &str| PARAMETERS.contains(&name) || OTHERS.contains(&name);
    if let Some(other) = request.params.iter().find(|param| !known(param.name())) {
        let name = other.name();
        return Err(Refusal::bad_argument(format!(
            "Appends have no parameter {name}; they have {}",
            PARAMETERS.join(", ")
        )));
    }
    let parts: Vec<&str> = rest.split('/').skip(1).collect();
    let id = |text: &str| text.parse().map_err(|_| Refusal::bad_argument("The id of an append is a UUID"));
    match (request.head.method(), &parts[..]) {
        (Method::Post, []) => Ok(Call::Open),
        (Method::Get, []) => Ok(Call::List),
        (Method::Get, [of]) => id(of).map(Call::Status),
        (Method::Delete, [of]) => id(of).map(Call::Abort),
        (Method::Post | Method::Put, [of, "batches", number]) => {
            Ok(Call::Put(id(of)?, whole_number(number, "A batch's number")?))
        }
        (Method::Post, [of, "commit"]) => id(of).map(Call::Commit),
        _ => Err(unknown()),
    }
}

pub(super) fn given_id(request: &Request<'_>) -> Result<Option<AppendId>, Refusal> {
    let given = request.param_str("id");
    given.map(|text| text.parse().map_err(|_| Refusal::bad_argument("id: the id of an append is a UUID"))).transpose()
}

pub(super) fn batches(request: &Request<'_>) -> Result<u64, Refusal> {
    let text = request.param_str("batches");
    let text = text.ok_or_else(|| Refusal::bad_argument("A commit says how many batches there are: batches=N"))?;
    whole_number(text, "batches")
}

/// Reads a number that has digits and nothing else.
fn whole_number(text: &str, what: &str) -> Result<u64, Refusal> {
    let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_one.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| Refusal::bad_argument(format!("{what} is a whole number from 0 on")))
}

pub(super) fn form(request: &Request<'_>) -> Result<Form, Refusal> {
    match request.param_str("format") {
        None => Ok(Form::ArrowStream),
        Some(name) if name.eq_ignore_ascii_case("ArrowStream") => Ok(Form::ArrowStream),
        Some(name) if name.eq_ignore_ascii_case("Native") => Ok(Form::Native),
        Some(_) => Err(Refusal::bad_argument("format: batches are in ArrowStream (when nothing is said) or Native")),
    }
}

pub(super) fn opening(request: &Request<'_>) -> Result<Option<Opening>, Refusal> {
    let bad = |text: &str| Refusal::bad_argument(text.to_owned());
    if request.param("table").is_none() {
        return Ok(None);
    }
    let table = request.param_str("table").and_then(TableName::parse);
    let table = table.ok_or_else(|| bad("table: a name, or a database's and a table's with a dot between"))?;
    let columns = match request.param("columns") {
        None => None,
        Some(_) => {
            let names = request.param_str("columns").and_then(column_names);
            Some(names.ok_or_else(|| bad("columns: names with commas between"))?)
        }
    };
    let ordered = match request.param("ordered") {
        None | Some(b"1" | b"true") => true,
        Some(b"0" | b"false") => false,
        Some(_) => return Err(bad("ordered: 0 or 1")),
    };
    let source = match request.param("source") {
        None => None,
        Some(_) => {
            let source = request.param_str("source").filter(|text| is_source(text));
            Some(source.ok_or_else(|| bad("source: 1 to 128 printable characters of ASCII"))?.to_owned())
        }
    };
    Ok(Some(Opening { table, columns, ordered, source }))
}

/// Says whether a text is fit to be a source, which is quoted in errors.
fn is_source(text: &str) -> bool {
    (1..=MAX_SOURCE_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use windrow_http::RequestHead;

    fn of(line: &str) -> Result<Call, Refusal> {
        let head = RequestHead::parse(Bytes::from(format!("{line} HTTP/1.1\r\n\r\n")), 100).unwrap();
        call(&Request::new(&head))
    }

    #[test]
    fn paths_are_understood() {
        let text = "00000000-0000-4000-8000-000000000007";
        let id: AppendId = text.parse().unwrap();
        let base = "/windrow/v1/appends";
        assert_eq!(of(&format!("POST {base}?table=t")).unwrap(), Call::Open);
        assert_eq!(of(&format!("GET {base}")).unwrap(), Call::List);
        assert_eq!(of(&format!("GET {base}/{text}")).unwrap(), Call::Status(id));
        assert_eq!(of(&format!("DELETE {base}/{text}")).unwrap(), Call::Abort(id));
        assert_eq!(of(&format!("POST {base}/{text}/batches/12?table=t")).unwrap(), Call::Put(id, 12));
        assert_eq!(of(&format!("POST {base}/{text}/commit?batches=3")).unwrap(), Call::Commit(id));
    }

    #[test]
    fn sources_are_short_texts() {
        assert!(is_source("a") && is_source(&"x y=~".repeat(25)));
        for bad in ["", "a\nb", "\u{e9}", &"x".repeat(129)] {
            assert!(!is_source(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        let id = "00000000-0000-4000-8000-000000000007";
        for line in [
            "POST /windrow/v1/appends/x",
            "POST /windrow/v1/appends/",
            "GET /windrow/v1/appends/x",
            "PUT /windrow/v1/appends",
            "POST /windrow/v1/appends?tabel=t",
            &format!("POST /windrow/v1/appends/{id}/batches"),
            &format!("POST /windrow/v1/appends/{id}/batches/-1"),
            &format!("POST /windrow/v1/appends/{id}/batches/+1"),
            &format!("POST /windrow/v1/appends/{id}/batches/18446744073709551616"),
            &format!("POST /windrow/v1/appends/{id}/batches/1/2"),
            &format!("OPTIONS /windrow/v1/appends/{id}"),
        ] {
            assert!(of(line).is_err(), "{line}");
        }
        assert!(!is_of_appends("/windrow/v1/appendsx"));
        assert!(is_of_appends("/windrow/v1/appends/x"));
    }
}
