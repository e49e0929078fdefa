//! Where inserts go: into one of many tables, or into one table in one of many ways.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use crate::load::{insert_query, is_mangled, RowFormat, RowsIn, Spread, Targets};
use crate::parts::inserts::Mode;
use crate::wire::Endpoint;

pub const LONG_TABLE: &str = "bench.long";
pub const WIDE_TABLE: &str = "bench.wide";
/// With what a row has anyway, 10 kB.
const PAD_BYTES: usize = 9_900;
/// With the six that a row has anyway, 500.
const FURTHER_COLUMNS: u32 = 494;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Target n is table n.
    Tables,
    /// Target n is user n.
    Users,
    /// Target n is a value of a setting that keeps inserts apart.
    Shapes,
    LongRows,
    ManyColumns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    pub kind: Kind,
    pub targets: u32,
    pub zipf: bool,
}

impl Ground {
    pub fn tables(tables: u32, zipf: bool) -> Self {
        Ground { kind: Kind::Tables, targets: tables, zipf }
    }

    pub fn of_kind(kind: Kind, targets: u32) -> Self {
        Ground { kind, targets, zipf: false }
    }

    pub fn spread(&self) -> Spread {
        match self.zipf {
            true => Spread::zipf(self.targets as usize),
            false => Spread::even(self.targets as usize),
        }
    }

    pub fn targets(&self, server: &Endpoint, mode: Mode, spread: Spread) -> Targets {
        Targets::new((0..self.targets).map(|target| self.request(server, mode, target)), spread)
    }

    fn request(&self, server: &Endpoint, mode: Mode, target: u32) -> (Endpoint, String) {
        let query = |table: &str| insert_query(table, RowFormat::JsonEachRow, mode.settings());
        match self.kind {
            Kind::Tables => (server.clone(), query(&format!("bench.t{target}"))),
            Kind::Users => {
                let endpoint = Endpoint { user: user(target), password: password(target), ..server.clone() };
                (endpoint, query("bench.t0"))
            }
            // As it is 100 by default and a row goes into one partition, it changes nothing else.
            Kind::Shapes => {
                (server.clone(), format!("{}&max_partitions_per_insert_block={}", query("bench.t0"), 101 + target))
            }
            Kind::LongRows => (server.clone(), query(LONG_TABLE)),
            Kind::ManyColumns => (server.clone(), query(WIDE_TABLE)),
        }
    }

    /// Of each row, beside what all rows have.
    pub fn fields(&self) -> Arc<str> {
        match self.kind {
            Kind::Tables | Kind::Users | Kind::Shapes => "".into(),
            Kind::LongRows => format!(",\"pad\":\"{}\"", "x".repeat(PAD_BYTES)).into(),
            Kind::ManyColumns => {
                let fields: String = (0..FURTHER_COLUMNS).map(|column| format!(",\"c{column}\":{column}")).collect();
                fields.into()
            }
        }
    }

    /// Where the rows are that these connections sent, spread like this.
    pub fn rows_in(&self, conns: Range<u32>, spread: &Spread) -> RowsIn {
        let first_conn = conns.start;
        let (from, is_mangled) = match self.kind {
            Kind::Tables => (merged(self.targets), is_mangled("toUInt64(substring(_table, 2))")),
            Kind::Users | Kind::Shapes => {
                // Nothing in a row of the table says whose it was, but even spreading can be repeated in SQL.
                let Spread::Even { stride } = spread else { unreachable!("only tables are spread by Zipf") };
                let target = format!("(conn - {first_conn} + seq * {stride}) % {}", self.targets);
                ("bench.t0".to_owned(), is_mangled(&target))
            }
            Kind::LongRows => {
                let pad = format!("pad != repeat('x', {PAD_BYTES})");
                (LONG_TABLE.to_owned(), format!("{} OR {pad}", is_mangled("0")))
            }
            Kind::ManyColumns => {
                let last = FURTHER_COLUMNS - 1;
                (WIDE_TABLE.to_owned(), format!("{} OR c1 != 1 OR c{last} != {last}", is_mangled("0")))
            }
        };
        RowsIn { from, conns: Some(conns), is_mangled }
    }
}

/// As many tables as may be needed at once to read all of so many. It may be a few more.
pub fn merged(tables: u32) -> String {
    let digits = tables.saturating_sub(1).to_string().len();
    format!("merge('bench', '^t[0-9]{{1,{digits}}}$')")
}

pub fn further_columns(kind: Kind) -> String {
    match kind {
        Kind::LongRows => "pad String".to_owned(),
        Kind::ManyColumns => {
            let columns: Vec<String> = (0..FURTHER_COLUMNS).map(|column| format!("c{column} UInt32")).collect();
            columns.join(", ")
        }
        Kind::Tables | Kind::Users | Kind::Shapes => String::new(),
    }
}

fn user(target: u32) -> String {
    format!("writer{target}")
}

fn password(target: u32) -> String {
    format!("secret-of-{target}")
}

/// The settings of a gateway whose ClickHouse has so many users more.
pub fn config_of_users(users: u32) -> String {
    let mut config = String::new();
    for target in 0..users {
        // Writing into a String can't fail.
        let _ =
            write!(config, "[[embedded.users]]\nname = \"{}\"\npassword = \"{}\"\n\n", user(target), password(target));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_reads_all_tables_that_there_are() {
        assert_eq!(merged(1), "merge('bench', '^t[0-9]{1,1}$')");
        assert_eq!(merged(10), "merge('bench', '^t[0-9]{1,1}$')");
        assert_eq!(merged(11), "merge('bench', '^t[0-9]{1,2}$')");
        assert_eq!(merged(10_000), "merge('bench', '^t[0-9]{1,4}$')");
    }
}
