//! The reasons why the backend gets a request as it came. docs/compatibility.md explains each of them.

use std::fmt;

use windrow_columns::NotParsedReason;
use windrow_sql::OtherStatement;

macro_rules! forward_reasons {
    ($($name:ident $label:literal,)*) => {
        /// Reason why a request is forwarded to the backend instead of gathered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ForwardReason {
            $($name,)*
            /// The payload could not be read for certain.
            NotParsed(NotParsedReason),
        }

        impl ForwardReason {
            /// Returns the label `reason` of `windrow_forwarded_requests_total`.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(ForwardReason::$name => $label,)*
                    ForwardReason::NotParsed(reason) => reason.as_str(),
                }
            }
        }

        #[cfg(test)]
        const LABELS: &[&str] = &[$($label),*];
    };
}

forward_reasons! {
    Read "read",
    NotAQuery "not_a_query",
    OtherStatement "other_statement",
    Unclear "unclear",
    AsyncInsertOff "async_insert=0",
    InsertForm "insert_form",
    Format "format",
    TooLarge "too_large",
    Encoding "encoding",
    Setting "setting",
    Credentials "credentials",
    Session "session",
    ExternalTable "external_table",
    Stage "stage",
    Hello "hello",
    QueryId "query_id",
    NotText "not_text",
    UnclearUser "unclear_user",
    UnknownUser "unknown_user",
    UnknownTable "unknown_table",
    Refused "refused",
    Engine "engine",
    Type "type",
    Columns "columns",
    Function "function",
    Deduplication "deduplication",
    SystemTable "system_table",
    ShardingKey "sharding_key",
    Sign "sign",
}

impl ForwardReason {
    /// Returns the reason of a statement that is no INSERT with rows of its own.
    pub(crate) fn of_statement(statement: &OtherStatement) -> ForwardReason {
        match statement.insert_form {
            Some(_) => ForwardReason::InsertForm,
            None => ForwardReason::OtherStatement,
        }
    }

    /// Says whether the rows were read for certain. ClickHouse, asked to read them, could then say nothing new.
    pub(crate) fn is_about_read_rows(self) -> bool {
        use ForwardReason::{Deduplication, Function, ShardingKey, Sign};
        matches!(self, Deduplication | Function | ShardingKey | Sign)
    }
}

impl fmt::Display for ForwardReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_documented() {
        let documented = include_str!("../../../docs/compatibility.md");
        for label in LABELS {
            assert!(documented.lines().any(|line| line.starts_with(&format!("| `{label}` | "))), "{label}");
        }
    }
}
