//! The check that a request that opens an append means the one that is open.
//!
//! A client that goes on with an append cuts its source anew, and sends the batches that are missing. From
//! another source, or cut otherwise, batches of two kinds would be mixed, and nobody would notice. So all
//! that decides what a batch of some number holds has to be the same.

use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::request::OpenRequest;

pub(crate) fn check_reopening(id: AppendId, first: &OpenRequest, now: &OpenRequest) -> Result<(), AppendError> {
    let differs = |what: &str, first: String, now: String| Err(errors::opened_otherwise(id, what, &first, &now));
    let table = |of: &OpenRequest| format!("{}.{}", of.database, of.table);
    if (&first.database, &first.table) != (&now.database, &now.table) {
        return differs("table", table(first), table(now));
    }
    if first.columns != now.columns {
        let columns = |of: &OpenRequest| of.columns.as_ref().map_or("not given".to_owned(), |names| names.join(","));
        return differs("columns", columns(first), columns(now));
    }
    if first.ordered != now.ordered {
        let ordered = |of: &OpenRequest| u8::from(of.ordered).to_string();
        return differs("ordered", ordered(first), ordered(now));
    }
    check_source(id, first.source.as_deref(), now.source.as_deref())
}

/// Checks the source of a request. A request need not say its source.
pub(crate) fn check_source(id: AppendId, first: Option<&str>, now: Option<&str>) -> Result<(), AppendError> {
    match now {
        Some(source) if first != Some(source) => {
            Err(errors::opened_otherwise(id, "source", first.unwrap_or("not given"), source))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_clickhouse::{Credentials, ErrorCode};

    fn opening() -> OpenRequest {
        OpenRequest {
            id: None,
            database: "d".into(),
            table: "t".into(),
            columns: None,
            ordered: true,
            source: Some("a.csv 17".into()),
            credentials: Credentials { user: "u".into(), password: "secret".into() },
        }
    }

    #[test]
    fn whatever_decides_what_batches_hold_has_to_be_the_same() {
        let id = AppendId::from_u128(1);
        let (same, silent) = (opening(), OpenRequest { source: None, ..opening() });
        assert!(check_reopening(id, &opening(), &same).is_ok());
        assert!(check_reopening(id, &opening(), &silent).is_ok(), "who says nothing of its source says nothing else");
        for (other, what) in [
            (OpenRequest { table: "u".into(), ..opening() }, "table"),
            (OpenRequest { database: "e".into(), ..opening() }, "table"),
            (OpenRequest { columns: Some(vec!["a".into()]), ..opening() }, "columns"),
            (OpenRequest { ordered: false, ..opening() }, "ordered"),
            (OpenRequest { source: Some("b.csv 17".into()), ..opening() }, "source"),
        ] {
            let error = check_reopening(id, &opening(), &other).unwrap_err();
            assert_eq!((error.status, error.exception.code), (409, ErrorCode::BAD_ARGUMENTS), "{error}");
            assert!(error.exception.line.contains(&format!("with {what} ")), "{error}");
        }
        assert!(check_reopening(id, &silent, &opening()).is_err(), "it was begun by somebody else");
    }
}
