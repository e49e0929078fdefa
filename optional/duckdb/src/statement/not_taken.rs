//! The reasons why a statement is not run, and what to do instead.

/// The reason why a statement is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// The statement would change its connection, which is gone with the request: SET, USE, BEGIN, PREPARE, a
    /// temporary table.
    OfTheConnection,
    /// The statement would change the server for everyone.
    OfTheServer,
    /// The statement would read or write a file: COPY, or a function such as `read_csv`.
    Files,
    /// The statement names a schema that Windrow keeps for itself.
    Windrows,
    /// The statement calls a function that acts on the server, or runs a text as a statement.
    Function,
    BackQuotes,
    /// A text `E'a'` goes on in the next line with `'b'`.
    JoinedTexts,
    /// A token is written with Unicode escapes: `U&"x"`, `U&'x'`.
    UnicodeEscapes,
    Unclosed,
    Unknown,
}

impl NotTaken {
    pub fn text(self) -> &'static str {
        match self {
            NotTaken::OfTheConnection => {
                "Every request has a connection of its own, so what SET, USE, PRAGMA, CALL, BEGIN, PREPARE or a temporary table \
                 would change is gone when it ends. Use the parameter database= for another schema, SELECT * FROM pragma_x() for what a \
                 PRAGMA tells, and the section [duckdb] of Windrow's configuration for DuckDB's settings"
            }
            NotTaken::OfTheServer => {
                "This would change the server for everyone. What DuckDB runs with stands in the section [duckdb] of Windrow's configuration: \
                 duckdb.memory_limit_bytes, duckdb.threads, duckdb.max_temporary_bytes, duckdb.max_result_connections. Other databases, \
                 extensions and secrets are not reached"
            }
            NotTaken::Files => {
                "Statements do not reach the machine's files: COPY is not run, and functions that read files are not called (glob, \
                 sniff_csv, and those whose names begin with read_, parquet_ or scan_ or end with _scan). Ask with FORMAT Parquet, CSV or \
                 another, and send rows with INSERT or an ordered append"
            }
            NotTaken::Windrows => {
                "What stands in the schemas windrow and windrow_functions is Windrow's own: it is read by SELECT, and changed by nobody else"
            }
            NotTaken::Function => {
                "checkpoint, force_checkpoint, the functions of logging, profiling and the parser act on the whole server, and query and \
                 json_execute_serialized_sql run texts that were not looked at: none of them is called here"
            }
            NotTaken::BackQuotes => "Names stand in double quotes",
            NotTaken::JoinedTexts => "A text that begins with E' ends on its line: join texts with ||",
            NotTaken::UnicodeEscapes => {
                "U& before a quote is not taken: write the characters themselves, in \"...\" a name and in '...' a text. Where & is an \
                 operator, put a space behind it"
            }
            NotTaken::Unclosed => "A quote or a comment does not end",
            NotTaken::Unknown => {
                "No statement that is taken begins like this: SELECT, FROM, WITH, VALUES, TABLE, SHOW, DESCRIBE, SUMMARIZE, PIVOT, \
                 UNPIVOT, EXPLAIN, INSERT, UPDATE, DELETE, MERGE, TRUNCATE, CREATE, ALTER, DROP (of tables, views, schemas, indexes, \
                 sequences, types and macros), COMMENT, ANALYZE, VACUUM and CHECKPOINT are"
            }
        }
    }
}
