//! Statements that read system tables which the gateway keeps itself.
//!
//! The gateway sends such a table along as an external table of the same name without a database, so `system.` has to
//! go from the statement. References are found among tokens: never in strings, comments or an INSERT's data. A name is
//! taken for the table wherever `system.name` stands, as a table or as the qualifier of a column, both of which are
//! rewritten alike; an unqualified name counts if the current database is `system`, and needs no rewriting. Arguments
//! of functions that read another server's tables (`remote(..)`) are left alone: there the names mean that server's.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::other::{self, Leading};
use crate::quote::Dialect;

const SYSTEM: &str = "system";

/// Functions whose arguments name tables that are looked up elsewhere than in this query's context.
const FUNCTIONS_OF_OTHER_SERVERS: [&str; 5] = ["remote", "remoteSecure", "cluster", "clusterAllReplicas", "merge"];

/// The use that a statement makes of the tables it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnTableUse {
    /// The statement reads their rows: external tables can stand in.
    Reads,
    /// The statement asks about the tables themselves: DESCRIBE, EXISTS, SHOW.
    Describes,
    /// The statement does anything else, such as a CREATE that would keep the name for later: better left
    /// alone.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTableReference {
    pub table: String,
    /// The bytes of `system.` before the name; empty if the name stands alone.
    pub prefix: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTables {
    pub usage: OwnTableUse,
    /// References in the order of the text.
    pub references: Vec<OwnTableReference>,
}

/// Returns the references of a statement to `own_tables` (names in the database `system`). Like all of
/// ClickHouse's names they are case-sensitive.
pub fn own_table_references(text: &[u8], current_database: &str, own_tables: &[&str]) -> OwnTables {
    let usage = usage(other::leading(&mut Cursor::new(text, false)));
    let mut scan =
        Scan { text, unqualified_counts: current_database == SYSTEM, own_tables, functions: Vec::new(), insert: false };
    OwnTables { usage, references: scan.references() }
}

/// Returns the statement without the `system.` of its references.
pub fn without_system_prefix(text: &[u8], tables: &OwnTables) -> Vec<u8> {
    let mut rewritten = Vec::with_capacity(text.len());
    let mut copied = 0;
    for reference in &tables.references {
        rewritten.extend_from_slice(text.get(copied..reference.prefix.start).unwrap_or_default());
        copied = reference.prefix.end;
    }
    rewritten.extend_from_slice(text.get(copied..).unwrap_or_default());
    rewritten
}

fn usage(leading: Leading) -> OwnTableUse {
    match leading {
        Leading::Select | Leading::With | Leading::From | Leading::Explain | Leading::Insert => OwnTableUse::Reads,
        Leading::Describe | Leading::Exists | Leading::Show => OwnTableUse::Describes,
        _ => OwnTableUse::Other,
    }
}

struct Scan<'t> {
    text: &'t [u8],
    unqualified_counts: bool,
    own_tables: &'t [&'t str],
    /// An entry for every open parenthesis: whether it opens the arguments of a function of other servers.
    functions: Vec<bool>,
    /// Says whether the scan is behind INSERT INTO.
    insert: bool,
}

impl Scan<'_> {
    fn references(&mut self) -> Vec<OwnTableReference> {
        let mut references = Vec::new();
        let mut lexer = Lexer::new(self.text);
        let nothing = Token { kind: TokenKind::End, start: 0, end: 0 };
        // The last three tokens: what precedes a name decides what it is.
        let (mut third, mut second, mut first) = (nothing, nothing, nothing);
        loop {
            let token = lexer.next_token();
            if token.kind == TokenKind::End || self.data_follows(&token) {
                return references;
            }
            self.track(&first, &token);
            references.extend(self.reference([&third, &second, &first], &token));
            (third, second, first) = (second, first, token);
        }
    }

    /// Says whether data follows: the text behind FORMAT or VALUES of an INSERT is not SQL.
    fn data_follows(&self, token: &Token) -> bool {
        let data_word = token.is_keyword(self.text, "FORMAT") || token.is_keyword(self.text, "VALUES");
        self.insert && self.functions.is_empty() && data_word
    }

    fn track(&mut self, previous: &Token, token: &Token) {
        match token.kind {
            TokenKind::Symbol(b'(') => {
                let name = previous.bytes(self.text);
                let elsewhere = FUNCTIONS_OF_OTHER_SERVERS.iter().any(|f| name.eq_ignore_ascii_case(f.as_bytes()));
                self.functions.push(elsewhere);
            }
            TokenKind::Symbol(b')') => {
                self.functions.pop();
            }
            _ => self.insert |= token.is_keyword(self.text, "INTO") && previous.is_keyword(self.text, "INSERT"),
        }
    }

    fn reference(&self, before: [&Token; 3], token: &Token) -> Option<OwnTableReference> {
        let [third, second, first] = before;
        if !token.is_identifier() || self.functions.contains(&true) {
            return None;
        }
        let name = token.name(Dialect::ClickHouse, self.text)?;
        let table = self.own_tables.iter().find(|own| **own == name)?;
        let qualified = first.is_symbol(b'.');
        let target = if qualified { third } else { first };
        if [".", "INTO", "TABLE"].iter().any(|word| target.bytes(self.text).eq_ignore_ascii_case(word.as_bytes())) {
            return None;
        }
        let start = match qualified {
            false if self.unqualified_counts => token.start,
            true if second.name(Dialect::ClickHouse, self.text).as_deref() == Some(SYSTEM) => second.start,
            _ => return None,
        };
        Some(OwnTableReference { table: (*table).to_owned(), prefix: start..token.start })
    }
}
