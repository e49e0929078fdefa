//! Makes the tables.

use crate::error::BenchError;
use crate::load::create_table;
use crate::sql::Sql;

/// Each statement waits for files to be made: a few at once are faster, many are not.
const CREATING_AT_ONCE: u32 = 8;

/// `bench.t0` and so on, in place of those that an earlier run may have left: nobody here sent their rows.
pub fn create_tables(clickhouse: &Sql, tables: u32) -> Result<(), BenchError> {
    let left = "SELECT name FROM system.tables WHERE database = 'bench' AND match(name, '^t[0-9]+$') FORMAT TSV";
    for table in clickhouse.query(left)?.lines() {
        clickhouse.execute(&format!("DROP TABLE bench.{table} SYNC"))?;
    }
    std::thread::scope(|scope| {
        let create = |first: u32| -> Result<(), BenchError> {
            for table in (first..tables).step_by(CREATING_AT_ONCE as usize) {
                clickhouse.execute(&create_table(&format!("bench.t{table}"), ""))?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..CREATING_AT_ONCE).map(|first| scope.spawn(move || create(first))).collect();
        for thread in threads {
            thread.join().map_err(|_| BenchError::Setup("who creates tables panicked".into()))??;
        }
        Ok(())
    })
}
