//! The demo's table. It is made, filled, watched and checked through the gateway like everything else.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use windrow_clickhouse::{Answer, Call, CallError, Client, ClientOptions, Credentials, Endpoint, ErrorCode};

use crate::calendar::datetime64_text;
use crate::cities::City;
use crate::engine::Engine;
use crate::errors::DemoError;
use crate::options::{Destination, Inserts};
use crate::probe_results::{NumberSet, MAX_ROWS};

const QUERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of an insert. It is longer than `wait_for_async_insert_timeout` (120 s), whose answer is better
/// than our own time limit.
const INSERT_TIMEOUT: Duration = Duration::from_secs(125);
/// Count of ids that are read at a time when all are checked.
const IDS_PER_PAGE: u64 = 500_000;

/// The table of a run: its address, and the id by which the run's rows are known.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    endpoint: Endpoint,
    options: ClientOptions,
    credentials: Credentials,
    /// The table's name as it stands in a statement.
    table: String,
    table_name: &'static str,
    database: String,
    run: RunId,
    inserts: Inserts,
    flush_after_ms: u64,
    pub engine: Engine,
}

/// The id of a run, by which its rows differ from those of others: 60 random bits, the first half of every
/// row's UUID.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunId(u64);

/// A measurement on its way into the table.
pub(crate) struct Row<'a> {
    pub number: u64,
    pub probe: usize,
    pub city: &'a City,
    pub url: &'a str,
    pub time: SystemTime,
    pub latency: Duration,
}

/// Counts of the table's parts, or of the batches that flushes leave in other databases.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PartCounts {
    pub active: u64,
    pub all: u64,
    /// Count of all parts that were ever made. ClickHouse numbers every part that an insert makes, so this
    /// counts also parts that are merged and gone.
    pub ever_created: u64,
}

/// The figures of one city in this run, from the table.
#[derive(Debug, Clone)]
pub(crate) struct CityRow {
    pub city: String,
    pub rows: u64,
    /// Average of the recent past; `None` without a row in it.
    pub average_ms: Option<f64>,
}

/// The course of one city's latency, step by step.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    pub city: String,
    pub averages_ms: Vec<Option<f64>>,
}

/// All ids of this run that were found.
#[derive(Debug, Default)]
pub(crate) struct FoundIds {
    pub numbers: NumberSet,
    pub rows: u64,
}

impl RunId {
    pub fn random() -> Result<Self, DemoError> {
        match getrandom::u64() {
            Ok(bits) => Ok(Self(bits >> 4)),
            Err(error) => Err(DemoError::Options(format!("the system gives no random numbers: {error}"))),
        }
    }

    pub fn text(self) -> String {
        format!("{:015x}", self.0)
    }

    /// Returns a UUID in the form of version 4: the run, then the row's number.
    fn row_id(self, number: u64) -> String {
        let run = self.text();
        let row = format!("{:015x}", number % MAX_ROWS);
        format!("{}-{}-4{}-8{}-{}", &run[..8], &run[8..12], &run[12..], &row[..3], &row[3..])
    }

    fn number_of(self, id: &str) -> Option<u64> {
        let number = u64::from_str_radix(&id.get(20..)?.replace('-', ""), 16).ok()?;
        (number < MAX_ROWS && self.row_id(number) == id).then_some(number)
    }
}

impl Store {
    pub fn new(destination: &Destination, run: RunId) -> Result<Self, DemoError> {
        let refused = |reason: String| DemoError::Options(format!("{} can't be used: {reason}", destination.address()));
        let endpoint = Endpoint::parse(&destination.url).map_err(|error| refused(error.to_string()))?;
        let credentials = Credentials { user: destination.user.clone(), password: destination.password.clone() };
        let database = destination.database.clone();
        let (inserts, engine) = (destination.inserts, destination.engine);
        let table_name = if inserts == Inserts::Synchronous { "upclick_straight" } else { "upclick" };
        let table = engine.table(&database, table_name);
        let flush_after_ms = destination.flush_after.as_millis().clamp(1, 3_600_000) as u64;
        let options = destination.client.clone();
        Ok(Self { endpoint, options, credentials, table, table_name, database, run, inserts, flush_after_ms, engine })
    }

    /// Makes a client with connections of its own, as each probe has.
    pub fn client(&self, max_connections: usize) -> Result<Client, DemoError> {
        let options = ClientOptions { max_connections, ..self.options.clone() };
        Client::new(self.endpoint.clone(), options).map_err(|error| DemoError::Options(error.to_string()))
    }

    pub async fn create_table(&self, client: &Client) -> Result<(), CallError> {
        self.query(client, &self.engine.create_table(&self.table)).await.map(drop)
    }

    /// Inserts one row and returns when the gateway has acknowledged it.
    pub async fn insert(&self, client: &Client, row: &Row<'_>) -> Result<(), CallError> {
        let body = [Bytes::from(self.json(row))];
        let call = Call::new(&self.credentials, &format!("INSERT INTO {} FORMAT JSONEachRow", self.table));
        // The article's limits: time alone decides for those who don't wait.
        let (wait, max_bytes, max_inserts) = match self.inserts {
            Inserts::Synchronous => {
                let call = call.param("async_insert", "0").body(&body).timeout(INSERT_TIMEOUT);
                return client.call(call).await.map(|_| ());
            }
            Inserts::Waiting => ("1", "1000000", "450"),
            Inserts::NotWaiting => ("0", "100000000", "450000"),
        };
        let call = call
            .param("async_insert", "1")
            .param("wait_for_async_insert", wait)
            .param("async_insert_busy_timeout_ms", &self.flush_after_ms.to_string())
            .param("async_insert_use_adaptive_busy_timeout", "0")
            .param("async_insert_max_data_size", max_bytes)
            .param("async_insert_max_query_number", max_inserts)
            .body(&body)
            .timeout(INSERT_TIMEOUT);
        client.call(call).await.map(|_| ())
    }

    fn json(&self, row: &Row<'_>) -> String {
        let City { name, country, latitude, longitude } = row.city;
        format!(
            "{{\"id\":\"{}\",\"run\":\"{}\",\"time\":\"{}\",\"probe\":{},\"city\":{},\"country\":{},\"latitude\":{latitude},\
             \"longitude\":{longitude},\"url\":{},\"latency_ms\":{:.3}}}\n",
            self.run.row_id(row.number),
            self.run.text(),
            datetime64_text(row.time),
            row.probe,
            json_text(name),
            json_text(country),
            json_text(row.url),
            row.latency.as_secs_f64() * 1000.0
        )
    }

    pub async fn part_counts(&self, client: &Client) -> Result<PartCounts, CallError> {
        let query = self.engine.count_pieces(&self.database, self.table_name);
        let answer = match self.query(client, &query).await {
            // Databases behind ADBC get the table of batches with the first one.
            Err(CallError::Exception(exception)) if exception.code == ErrorCode::UNKNOWN_TABLE => {
                return Ok(PartCounts::default())
            }
            answered => answered?,
        };
        let mut numbers = answer.text().split_whitespace().map(|field| field.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Ok(PartCounts { active: next(), all: next(), ever_created: next() })
    }

    /// Returns every city with rows in this run, with its average since `since`.
    pub async fn cities(&self, client: &Client, since: SystemTime) -> Result<Vec<CityRow>, CallError> {
        let query = self.engine.cities(&self.table, &self.run.text(), since);
        let answer = self.query(client, &query).await?;
        Ok(answer.text().lines().filter_map(parse_city).collect())
    }

    /// Returns each city's averages in `steps` steps of `step` seconds from `since` on.
    pub async fn courses(
        &self,
        client: &Client,
        since: SystemTime,
        step: u64,
        steps: usize,
    ) -> Result<Vec<Course>, CallError> {
        let query = self.engine.course(&self.table, &self.run.text(), since, step);
        let answer = self.query(client, &query).await?;
        let mut courses: Vec<Course> = Vec::new();
        for (city, at, average_ms) in answer.text().lines().filter_map(parse_step).filter(|(_, at, _)| *at < steps) {
            let known = courses.iter().position(|course| course.city == city).unwrap_or_else(|| {
                courses.push(Course { city: city.to_owned(), averages_ms: vec![None; steps] });
                courses.len() - 1
            });
            courses[known].averages_ms[at] = Some(average_ms);
        }
        Ok(courses)
    }

    /// Says whether acknowledged rows are stored already.
    pub fn waits(&self) -> bool {
        self.inserts != Inserts::NotWaiting
    }

    /// Makes the gateway store buffered rows, if the run doesn't wait for them.
    pub async fn flush(&self, client: &Client) -> Result<(), CallError> {
        if self.waits() {
            return Ok(());
        }
        self.query(client, &format!("SYSTEM FLUSH ASYNC INSERT QUEUE {}", self.table)).await.map(|_| ())
    }

    /// Reads the id of every row of this run.
    pub async fn found_ids(&self, client: &Client) -> Result<FoundIds, CallError> {
        let mut found = FoundIds::default();
        loop {
            let query = format!(
                "SELECT id FROM {} WHERE run = '{}' ORDER BY id LIMIT {IDS_PER_PAGE} OFFSET {} FORMAT TabSeparated",
                self.table,
                self.run.text(),
                found.rows
            );
            let answer = self.query(client, &query).await?;
            let mut in_page = 0;
            for id in answer.text().lines() {
                in_page += 1;
                self.run.number_of(id).into_iter().for_each(|number| _ = found.numbers.insert(number));
            }
            found.rows += in_page;
            if in_page < IDS_PER_PAGE {
                return Ok(found);
            }
        }
    }

    async fn query(&self, client: &Client, query: &str) -> Result<Answer, CallError> {
        client.call(Call::new(&self.credentials, query).timeout(QUERY_TIMEOUT)).await
    }
}

fn parse_city(line: &str) -> Option<CityRow> {
    let mut fields = line.split('\t');
    let (city, rows, average) = (fields.next()?, fields.next()?, fields.next()?);
    let average_ms = average.parse().ok().filter(|average: &f64| average.is_finite());
    Some(CityRow { city: city.to_owned(), rows: rows.parse().ok()?, average_ms })
}

fn parse_step(line: &str) -> Option<(&str, usize, f64)> {
    let mut fields = line.split('\t');
    Some((fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn json_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cities::CITIES;
    use std::time::UNIX_EPOCH;

    #[test]
    fn ids_carry_run_and_number() {
        let run = RunId(0x0123_4567_89ab_cdef >> 4);
        for number in [0, 1, 4095, 4096, 1 << 40, MAX_ROWS - 1] {
            let id = run.row_id(number);
            assert_eq!(id.len(), 36, "{id}");
            assert_eq!(run.number_of(&id), Some(number), "{id}");
            assert_eq!(RunId(7).number_of(&id), None, "a row of another run");
        }
        assert_eq!(run.row_id(0x1002), "01234567-89ab-4cde-8000-000000001002");
        for end in 0..36 {
            assert_eq!(run.number_of(&run.row_id(5)[..end]), None);
        }
    }

    #[test]
    fn a_row_is_one_line_of_json() {
        let destination = Destination::new("http://localhost:1", Inserts::Waiting);
        let destination = Destination { database: "a`b\\".to_owned(), ..destination };
        let store = Store::new(&destination, RunId(1)).expect("a valid destination");
        assert_eq!(store.table, "`a\\`b\\\\`.upclick");
        let row = Row {
            number: 2,
            probe: 3,
            city: &CITIES[15],
            url: "http://x/\"\\\n",
            time: UNIX_EPOCH + Duration::from_millis(1500),
            latency: Duration::from_micros(12_345),
        };
        let expected = "{\"id\":\"00000000-0000-4001-8000-000000000002\",\"run\":\"000000000000001\",\"time\":\"1970-01-01 00:00:01.500\",\
            \"probe\":3,\"city\":\"São Paulo\",\"country\":\"BR\",\"latitude\":-23.55,\"longitude\":-46.63,\
            \"url\":\"http://x/\\\"\\\\\\u000a\",\"latency_ms\":12.345}\n";
        assert_eq!(store.json(&row), expected);
    }

    #[test]
    fn answers_that_make_no_sense_are_skipped() {
        assert!(parse_city("Paris\t3\t12.5").is_some_and(|row| row.rows == 3 && row.average_ms == Some(12.5)));
        assert!(parse_city("Paris\t3\tnan").is_some_and(|row| row.average_ms.is_none()));
        for line in ["", "Paris", "Paris\tx\t1", "Paris\t3"] {
            assert!(parse_city(line).is_none(), "{line}");
        }
        assert_eq!(parse_step("Paris\t3\t12.5"), Some(("Paris", 3, 12.5)));
        for line in ["", "Paris", "Paris\t-1\t1", "Paris\t3", "Paris\t3\tx"] {
            assert!(parse_step(line).is_none(), "{line}");
        }
    }
}
