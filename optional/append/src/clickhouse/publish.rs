//! The publishing of an append that was decided, whatever comes in between: lost answers, a server that dies,
//! a gateway that was killed.
//!
//! After each answer that leaves something open the staging table is renamed, so that nothing late can act on
//! it, and both tables are looked at. Only parts that are surely not in the target are sent again. If the
//! outcome can't be known, that is said, and the staging table is kept.

use std::time::Duration;

use windrow_clickhouse::{CallError, ErrorCode};
use windrow_sql::{backquote, quote_string};

use super::attempt::{attempt, is_settled, query_id};
use super::evidence::{judge, Sight, Verdict};
use super::look;
use super::publication::{Publication, WrittenMethod};
use super::server::{may_not, Session};
use super::state_log::now_ms;
use super::statements::{drop_part, Name};
use crate::answer::Atomicity;
use crate::error::AppendError;
use crate::id::AppendId;

/// The end of an append that was decided.
#[derive(Debug)]
pub(super) enum Ending {
    Committed(Atomicity),
    /// The append was refused: no part of it is stored.
    Refused(AppendError),
    Unknown(String),
}

/// The number of tries after which an append is given up for an error that may pass, if none of its rows has
/// arrived.
const PASSING_TRIES: u32 = 20;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Publisher<'a> {
    session: &'a Session,
    id: AppendId,
    publication: &'a Publication,
    pause: Duration,
    /// True if some parts were seen to have arrived without the others: not all became visible at one moment.
    was_halved: bool,
}

/// The next step after a look.
enum Next {
    Again(Name),
    End(Ending),
}

impl<'a> Publisher<'a> {
    pub(super) fn new(session: &'a Session, id: AppendId, publication: &'a Publication) -> Publisher<'a> {
        Publisher { session, id, publication, pause: Duration::from_millis(20), was_halved: false }
    }

    /// Publishes the append. With `staging` nothing has been tried yet; with `None` an earlier process may
    /// have tried.
    pub(super) async fn publish(mut self, staging: Option<Name>) -> Ending {
        let mut staging = match staging {
            Some(staging) => staging,
            None => match self.look_until_clear(None).await {
                Next::Again(staging) => staging,
                Next::End(ending) => return ending,
            },
        };
        let mut tries = 0;
        loop {
            let error = match attempt(self.session, self.id, self.publication, &staging).await {
                Ok(atomic) => return Ending::Committed(self.as_seen(atomic)),
                Err(error) => error,
            };
            tries += 1;
            let is_final = is_settled(&error) && (tries > PASSING_TRIES || !is_passing(&error));
            tracing::warn!(append = %self.id, table = %self.publication.target().quoted(), %error, "an append is not published yet");
            match self.look_until_clear(Some(&error)).await {
                Next::Again(_) if is_final && !self.was_halved => return Ending::Refused(refusal(error)),
                Next::Again(renamed) => staging = renamed,
                Next::End(ending) => return ending,
            }
            self.wait().await;
        }
    }

    fn as_seen(&self, atomic: Atomicity) -> Atomicity {
        if self.was_halved {
            Atomicity::Block
        } else {
            atomic
        }
    }

    async fn wait(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Looks until the server answers.
    async fn look_until_clear(&mut self, error: Option<&CallError>) -> Next {
        loop {
            match self.look(error).await {
                Ok(next) => return next,
                Err(error) if may_not(&error) => {
                    let why = format!("the gateway's own account may not finish it: {error}");
                    return Next::End(Ending::Unknown(why));
                }
                Err(error) => {
                    tracing::warn!(append = %self.id, %error, "an append that is decided waits for ClickHouse")
                }
            }
            self.wait().await;
        }
    }

    async fn look(&mut self, error: Option<&CallError>) -> Result<Next, CallError> {
        let staging = look::fence(self.session, self.id, self.publication, &query_id(self.id)).await?;
        let sight = look::sight(self.session, staging.as_ref(), &self.publication.target()).await?;
        if sight.target_uuid.as_ref().is_some_and(|uuid| *uuid != self.publication.table_uuid) {
            return Ok(self.another_table(&sight));
        }
        if self.publication.method == WrittenMethod::Rows {
            return Ok(self.rows_next(staging, &sight, error));
        }
        match (judge(&self.publication.parts, &sight), staging) {
            (Verdict::Published, _) => Ok(self.published()),
            (Verdict::NotSeen, Some(staging)) => self.not_seen(staging, &sight).await,
            (Verdict::Half { arrived }, Some(staging)) => {
                self.was_halved = true;
                for part in arrived {
                    self.session.run(&drop_part(&staging, &part)).await?;
                }
                Ok(Next::Again(staging))
            }
            _ => Ok(unknown("its staging table is gone or damaged")),
        }
    }

    /// Ends an append after another table has taken the target's name: nothing is written to that one. Parts
    /// that were moved before went with the old table.
    fn another_table(&self, sight: &Sight) -> Next {
        let moves = self.publication.method == WrittenMethod::Parts && self.publication.partitions().len() <= 1;
        match judge(&self.publication.parts, sight) {
            Verdict::Published if moves => self.published(),
            Verdict::NotSeen if moves => {
                let text =
                    format!("Table {} was replaced before the append came into it", self.publication.target().quoted());
                Next::End(Ending::Refused(AppendError::new(ErrorCode::UNKNOWN_TABLE, &text)))
            }
            _ => unknown("another table has taken the name of its table"),
        }
    }

    fn published(&self) -> Next {
        Next::End(Ending::Committed(self.as_seen(self.publication.atomicity())))
    }

    /// Decides what to do when no part was seen in the target. A table that was merged long enough ago has no part
    /// with a UUID of ours left; then the rows are looked for. Several partitions came together or not at all, so
    /// that the rows of one part tell. A single one would be gone from the staging table, unless the server was
    /// killed while it moved: all rows are looked for, and if there are such rows, nobody knows whose they are.
    async fn not_seen(&self, staging: Name, sight: &Sight) -> Result<Next, CallError> {
        let moves = self.publication.method == WrittenMethod::Parts && self.publication.partitions().len() <= 1;
        let would_show = moves && self.publication.would_show(now_ms());
        if would_show || sight.newest_block <= self.publication.newest_block {
            return Ok(Next::Again(staging));
        }
        let Some(part) = self.publication.parts.iter().min_by_key(|part| part.rows) else {
            return Ok(self.published());
        };
        let part_uuid = (!moves).then_some(part.uuid.as_str());
        let found = self.session.ask(&self.rows_in_target(&staging, part_uuid), &[]).await;
        let found: Option<u64> = match found {
            Ok(text) => text.trim().parse().ok(),
            Err(CallError::Exception(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(match found {
            Some(0) => Next::Again(staging),
            Some(rows) if !moves && rows == part.rows => self.published(),
            _ => unknown("the target was merged since, and does not show whether it has the rows"),
        })
    }

    /// Returns the query that counts the rows of the staging table, or of a part of it, that the target's
    /// newer parts have as well.
    fn rows_in_target(&self, staging: &Name, part_uuid: Option<&str>) -> String {
        let target = self.publication.target();
        let [database, table, staged] =
            [&target.database, &target.table, &staging.table].map(|name| quote_string(name));
        let columns: Vec<String> = self.publication.columns.iter().map(|column| backquote(column)).collect();
        let hash = format!("cityHash64({})", columns.join(", "));
        let parts = |table: &str, condition: &str| {
            format!("_part IN (SELECT name FROM system.parts WHERE database = {database} AND table = {table} AND active AND {condition})")
        };
        let of_part = part_uuid.map(|uuid| format!("uuid = toUUID({})", quote_string(uuid)));
        let ours = parts(&staged, of_part.as_deref().unwrap_or("rows > 0"));
        let newer = parts(&table, &format!("max_block_number > {}", self.publication.newest_block));
        format!(
            "SELECT count() FROM {} WHERE {ours} AND {hash} IN (SELECT {hash} FROM {} WHERE {newer}) FORMAT TSV",
            staging.quoted(),
            target.quoted()
        )
    }

    /// Decides what to do after rows were written anew. They leave no trace by which they could be told from
    /// others; but a block has a number.
    fn rows_next(&self, staging: Option<Name>, sight: &Sight, error: Option<&CallError>) -> Next {
        let Some(staging) = staging else { return unknown("its staging table is gone") };
        let may_be_there = match error {
            Some(CallError::NotSent(_)) => false,
            Some(error) if is_settled(error) => leaves_something(error),
            _ => true,
        };
        let shows_nothing = self.publication.has_parts && sight.newest_block <= self.publication.newest_block;
        if !may_be_there || shows_nothing || self.publication.deduplicates {
            return Next::Again(staging);
        }
        unknown(match error {
            Some(error) if is_settled(error) => "a part of it may be stored; its INSERT failed",
            _ => "its INSERT got no answer, and the table remembers no INSERTs (non_replicated_deduplication_window)",
        })
    }
}

/// Says whether an error may leave rows: in blocks before the failed one, or in tables to which views write.
fn leaves_something(error: &CallError) -> bool {
    match error {
        CallError::Exception(exception) => {
            !exception.before_writing && (exception.is_of_a_view() || !exception.comes_of_values())
        }
        _ => true,
    }
}

fn unknown(why: &str) -> Next {
    Next::End(Ending::Unknown(why.to_owned()))
}

fn is_passing(error: &CallError) -> bool {
    matches!(error, CallError::Exception(exception) if exception.is_passing())
}

fn refusal(error: CallError) -> AppendError {
    super::server::failure(error)
}
