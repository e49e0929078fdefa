//! The selection of dead letters by conditions.

use std::collections::BTreeSet;

use windrow_clickhouse::ErrorCode;

use super::moment::parse_moment;
use super::summary::{DeadLetterId, DeadLetterSummary};

/// A choice of dead letters: those that fulfil all of its conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The ids; an empty set means any id.
    pub ids: BTreeSet<DeadLetterId>,
    pub database: Option<String>,
    pub table: Option<String>,
    pub user: Option<String>,
    /// The pipeline of messages; likewise the topic, and the partition.
    pub pipeline: Option<String>,
    pub topic: Option<String>,
    pub partition: Option<i32>,
    /// ClickHouse's code of the error.
    pub code: Option<ErrorCode>,
    /// The earliest time of failure, in microseconds since 1970.
    pub since_micros: Option<u64>,
    /// The time before which it failed, in microseconds since 1970.
    pub until_micros: Option<u64>,
}

/// The names that [`Selection::add`] knows.
pub const CONDITIONS: [&str; 10] =
    ["id", "database", "table", "user", "pipeline", "topic", "partition", "code", "since", "until"];

impl Selection {
    /// Adds a condition by its name, as it is written in a URL or on the command line.
    ///
    /// # Errors
    /// Fails where there is no such condition, or the value can't be read; the error is a sentence for the
    /// user who wrote it.
    pub fn add(&mut self, name: &str, value: &str, now_micros: u64) -> Result<(), String> {
        match name {
            "id" => {
                for id in value.split(',') {
                    self.ids.insert(parse_id(id)?);
                }
            }
            "database" => self.database = Some(value.to_owned()),
            "table" => self.name_table(value),
            "user" => self.user = Some(value.to_owned()),
            "pipeline" => self.pipeline = Some(value.to_owned()),
            "topic" => self.topic = Some(value.to_owned()),
            "partition" => {
                let number =
                    value.trim().parse().map_err(|_| format!("'{value}' is no partition, which is a number"))?;
                self.partition = Some(number);
            }
            "code" => {
                self.code = Some(value.trim().parse().map_err(|_| format!("'{value}' is no error code, such as 469"))?);
            }
            "since" => self.since_micros = Some(parse_moment(value, now_micros)?),
            "until" => self.until_micros = Some(parse_moment(value, now_micros)?),
            _ => return Err(format!("there is no condition '{name}'; there are {}", CONDITIONS.join(", "))),
        }
        Ok(())
    }

    /// Sets the table. `database.table` names both, unless another database was given separately: a table's
    /// name may have a dot in it.
    fn name_table(&mut self, value: &str) {
        match value.split_once('.') {
            Some((database, table)) if self.database.as_deref().is_none_or(|known| known == database) => {
                self.database = Some(database.to_owned());
                self.table = Some(table.to_owned());
            }
            _ => self.table = Some(value.to_owned()),
        }
    }

    /// Says whether the selection has no condition, and so selects all dead letters.
    pub fn is_everything(&self) -> bool {
        *self == Selection::default()
    }

    pub fn matches(&self, dead_letter: &DeadLetterSummary) -> bool {
        let is = |wanted: &Option<String>, have: &str| wanted.as_deref().is_none_or(|wanted| wanted == have);
        (self.ids.is_empty() || self.ids.contains(&dead_letter.id))
            && is(&self.database, &dead_letter.origin.database)
            && is(&self.table, &dead_letter.origin.table)
            && is(&self.user, &dead_letter.origin.user)
            && self.matches_message(dead_letter)
            && self.code.is_none_or(|code| code == dead_letter.code)
            && self.since_micros.is_none_or(|since| dead_letter.failed_micros >= since)
            && self.until_micros.is_none_or(|until| dead_letter.failed_micros < until)
    }

    /// Says whether the conditions on messages are fulfilled. An insert does not fulfil any of them.
    fn matches_message(&self, dead_letter: &DeadLetterSummary) -> bool {
        let stream = dead_letter.origin.stream.as_deref();
        let is = |wanted: &Option<String>, have: Option<&String>| wanted.is_none() || wanted.as_ref() == have;
        is(&self.pipeline, stream.map(|stream| &stream.pipeline))
            && is(&self.topic, stream.map(|stream| &stream.topic))
            && (self.partition.is_none() || self.partition == dead_letter.message.map(|message| message.partition))
    }
}

/// Reads the id of a dead letter.
///
/// # Errors
/// Fails where the text is no number; the error is a sentence for the user who wrote it.
pub fn parse_id(text: &str) -> Result<DeadLetterId, String> {
    text.trim().parse().map(DeadLetterId).map_err(|_| format!("'{text}' is no id of a dead letter, which is a number"))
}

/// A section of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}
