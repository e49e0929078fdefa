//! Those who look at the table while rows come in: the article's case.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::load::Histogram;
use crate::sql::Sql;

/// Each asks, looks at the answer for a while, and asks again.
const DASHBOARDS: usize = 4;
const LOOKS_FOR: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub queries_per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Asks for the most viewed titles over all rows of a table, until the work is done.
pub fn ask_while<T>(sql: &Sql, table: &str, work: impl FnOnce() -> T) -> Result<(T, Asked), BenchError> {
    let query = format!(
        "SELECT property_id, video_title, sum(total_view_count) AS views, max(event_datetime) FROM {table} \
         GROUP BY property_id, video_title ORDER BY views DESC LIMIT 20"
    );
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..DASHBOARDS).map(|_| scope.spawn(|| ask(sql, &query, &done))).collect();
        let began = Instant::now();
        let result = work();
        done.store(true, Ordering::Relaxed);
        let (mut times, mut queries) = (Histogram::default(), 0);
        for thread in threads {
            let (of_one, asked) = thread.join().map_err(|_| BenchError::Setup("a dashboard panicked".into()))??;
            times.merge(&of_one);
            queries += asked;
        }
        let queries_per_second = queries as f64 / began.elapsed().as_secs_f64();
        Ok((result, Asked { queries_per_second, p50_ms: times.quantile_ms(0.5), p99_ms: times.quantile_ms(0.99) }))
    })
}

fn ask(sql: &Sql, query: &str, done: &AtomicBool) -> Result<(Histogram, u64), BenchError> {
    let (mut times, mut queries) = (Histogram::default(), 0);
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        sql.execute(query)?;
        times.add(began.elapsed());
        queries += 1;
        std::thread::sleep(LOOKS_FOR);
    }
    Ok((times, queries))
}
