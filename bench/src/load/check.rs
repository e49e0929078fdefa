//! Compares what was stored in ClickHouse with what was acknowledged, id by id.

use std::fmt::Write;
use std::ops::Range;

use super::outcome::{ConnectionIds, LoadOutcome};
use super::row::is_mangled;
use crate::error::BenchError;
use crate::sql::Sql;

/// Ids that one statement asks for; keeps it far below ClickHouse's limit on a query's size.
const IDS_PER_QUERY: usize = 5_000;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub rows: u64,
    /// Acknowledged, but not there.
    pub lost: u64,
    /// There more than once.
    pub doubled: u64,
    /// There, though never sent or not as sent.
    pub foreign: u64,
    /// There, though not acknowledged: refused with an error, or never answered. Not wrong for an unanswered one.
    pub unacknowledged_but_there: u64,
}

impl Stored {
    pub fn is_exact(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.foreign == 0
    }
}

/// What the table holds of one connection.
#[derive(Debug, Clone, Copy)]
struct Found {
    conn: u64,
    rows: u64,
    distinct: u64,
    max_seq: u64,
    mangled: u64,
}

/// Where a run's rows are.
pub struct RowsIn {
    /// A table, or what else may stand behind FROM.
    pub from: String,
    /// The numbers that the run's connections have there, if other runs' rows are there, too.
    pub conns: Option<Range<u32>>,
    /// In SQL, as `is_mangled` makes it.
    pub is_mangled: String,
}

impl RowsIn {
    fn first_conn(&self) -> u32 {
        self.conns.as_ref().map_or(0, |conns| conns.start)
    }

    fn condition(&self) -> String {
        let of = |conns: &Range<u32>| format!("conn >= {} AND conn < {}", conns.start, conns.end);
        self.conns.as_ref().map_or_else(|| "1".to_owned(), of)
    }
}

pub fn check_stored(sql: &Sql, table: &str, outcome: &LoadOutcome) -> Result<Stored, BenchError> {
    check_rows(sql, &RowsIn { from: table.to_owned(), conns: None, is_mangled: is_mangled("0") }, outcome)
}

/// A row is looked for in all of `from` at once, so that one which is in two tables counts as doubled.
pub fn check_rows(sql: &Sql, rows: &RowsIn, outcome: &LoadOutcome) -> Result<Stored, BenchError> {
    let answer = sql.query(&format!(
        "SELECT conn - {}, count(), count(DISTINCT seq), max(seq), countIf({}) FROM {} WHERE {} GROUP BY conn FORMAT TSV",
        rows.first_conn(),
        rows.is_mangled,
        rows.from,
        rows.condition()
    ))?;
    let found = answer.lines().map(parse_found).collect::<Result<Vec<_>, _>>()?;
    let uncertain = unacknowledged_there(sql, rows, &outcome.ids)?;
    Ok(compare(&outcome.ids, &found, &uncertain))
}

fn parse_found(line: &str) -> Result<Found, BenchError> {
    let fields: Vec<u64> = line.split('\t').filter_map(|field| field.parse().ok()).collect();
    let [conn, rows, distinct, max_seq, mangled] = fields[..] else {
        return Err(BenchError::Setup(format!("the check expected five numbers, ClickHouse answered {line:?}")));
    };
    Ok(Found { conn, rows, distinct, max_seq, mangled })
}

/// For each connection: how many of its unacknowledged ids are in the table nevertheless.
fn unacknowledged_there(sql: &Sql, rows: &RowsIn, ids: &[ConnectionIds]) -> Result<Vec<u64>, BenchError> {
    let (from, first_conn) = (&rows.from, rows.first_conn());
    let mut there = vec![0; ids.len()];
    let pairs: Vec<(usize, u64)> =
        ids.iter().enumerate().flat_map(|(conn, ids)| ids.unacknowledged.iter().map(move |seq| (conn, *seq))).collect();
    for pairs in pairs.chunks(IDS_PER_QUERY) {
        let mut list = String::new();
        for (conn, seq) in pairs {
            let _ = write!(list, "({},{seq}),", *conn as u32 + first_conn);
        }
        let list = list.trim_end_matches(',');
        let query = format!(
            "SELECT conn - {first_conn}, count(DISTINCT seq) FROM {from} WHERE (conn, seq) IN ({list}) GROUP BY conn FORMAT TSV \
             SETTINGS max_query_size = 10000000, max_ast_elements = 1000000, max_expanded_ast_elements = 1000000"
        );
        for line in sql.query(&query)?.lines() {
            let mut fields = line.split('\t').filter_map(|field| field.parse::<u64>().ok());
            if let (Some(conn), Some(count)) = (fields.next(), fields.next()) {
                there[conn as usize] += count;
            }
        }
    }
    Ok(there)
}

fn compare(ids: &[ConnectionIds], found: &[Found], unacknowledged_there: &[u64]) -> Stored {
    let mut stored = Stored::default();
    let mut acknowledged_there = vec![0; ids.len()];
    for found in found {
        stored.rows += found.rows;
        stored.doubled += found.rows - found.distinct;
        stored.foreign += found.mangled;
        match ids.get(found.conn as usize) {
            Some(ids) if found.max_seq < ids.sent => {
                let uncertain = unacknowledged_there[found.conn as usize];
                acknowledged_there[found.conn as usize] = found.distinct.saturating_sub(uncertain);
            }
            _ => stored.foreign += found.rows,
        }
    }
    let missing = |(ids, there): (&ConnectionIds, &u64)| ids.acknowledged().saturating_sub(*there);
    stored.lost = ids.iter().zip(&acknowledged_there).map(missing).sum();
    stored.unacknowledged_but_there = unacknowledged_there.iter().sum();
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sent: u64, unacknowledged: &[u64]) -> ConnectionIds {
        ConnectionIds { sent, unacknowledged: unacknowledged.to_vec() }
    }

    fn found(conn: u64, rows: u64, distinct: u64, max_seq: u64) -> Found {
        Found { conn, rows, distinct, max_seq, mangled: 0 }
    }

    #[test]
    fn everything_there_is_exact() {
        let stored = compare(&[sent(3, &[]), sent(0, &[])], &[found(0, 3, 3, 2)], &[0, 0]);
        assert_eq!(stored, Stored { rows: 3, ..Stored::default() });
        assert!(stored.is_exact());
    }

    #[test]
    fn a_lost_row_is_not_hidden_by_an_unacknowledged_one_that_landed() {
        // 0 to 9 were sent, 4 and 5 refused. Eight rows are there, but one of them is 4: an acknowledged one is
        // missing.
        let stored = compare(&[sent(10, &[4, 5])], &[found(0, 8, 8, 9)], &[1]);
        assert_eq!((stored.lost, stored.unacknowledged_but_there, stored.is_exact()), (1, 1, false));
    }

    #[test]
    fn a_lost_row_is_not_hidden_by_a_doubled_one() {
        let stored = compare(&[sent(10, &[])], &[found(0, 10, 9, 9)], &[0]);
        assert_eq!((stored.lost, stored.doubled), (1, 1));
    }

    #[test]
    fn a_connection_without_any_row_lost_them_all() {
        assert_eq!(compare(&[sent(5, &[2])], &[], &[0]).lost, 4);
    }

    #[test]
    fn rows_that_nobody_sent_are_foreign() {
        let stored = compare(&[sent(2, &[])], &[found(0, 2, 2, 7), found(9, 1, 1, 0)], &[0]);
        assert_eq!(stored.foreign, 3);
        let mangled = Found { mangled: 1, ..found(0, 2, 2, 1) };
        assert_eq!(compare(&[sent(2, &[])], &[mangled], &[0]).foreign, 1);
    }

    #[test]
    fn an_answer_of_another_shape_is_refused() {
        assert!(parse_found("1\t2\t3\t4\t5").is_ok());
        assert!(parse_found("1\t2\t3").is_err());
        assert!(parse_found("1\tx\t3\t4\t5").is_err());
    }
}
