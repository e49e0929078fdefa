//! Stages of an insert, whatever protocol it came by. Each goes on to the next, and none goes back:
//!
//! 1. [`Candidate`] (`candidate.rs`): a protocol has understood a request as an insert.
//! 2. [`Prepared`] (`admit.rs`): its user may insert into the table, and the readers of its payloads are
//!    settled. It is remembered, or worked out by `prepare.rs`.
//! 3. [`Parsed`] (`parse.rs`): its payload has become rows (`readers.rs`).
//! 4. A ticket (`hand_over.rs`): the gatherer has the rows; the outcome is waited for.
//!
//! An insert that can't go on is a [`NotGathered`]: it is refused, or goes to the backend.
//! [`ingest`](crate::ingest) goes through the stages.

mod admit;
mod answer_form;
mod asking;
mod backend_reader;
mod blocks;
mod candidate;
mod dedup_plan;
mod dedup_settings;
mod hand_over;
mod keeping;
mod logged_query;
mod not_taken;
mod options;
mod own_settings;
mod parse;
mod prepare;
mod prepare_backend_reader;
mod prepare_passthrough;
mod prepared;
mod query_settings;
mod questions;
mod read;
mod readers;
mod role;
mod settings_by_role;

pub(crate) use answer_form::AnswerForm;
pub(crate) use asking::InflightAdmissions;
pub use candidate::{query_id, Origin};
pub(crate) use candidate::{random_query_id, Candidate, NotGathered, RowsForm, SentRows};
pub(crate) use dedup_plan::{identities, DedupPlan};
pub(crate) use dedup_settings::{is_dedup_setting, is_token, recognised, DedupSettings, DefaultProfile};
pub(crate) use hand_over::{hand_over, Progress, Silent, Summary};
pub(crate) use keeping::{go_on as go_on_keeping, keep};
pub(crate) use not_taken::{not_taken, too_large, unreadable};
pub use options::StatementOptions;
pub(crate) use options::{url_name, Receiver};
pub(crate) use own_settings::{RequestedSettings, WAIT_TIMEOUT};
pub(crate) use parse::{log_unreadable, parse, Parsed};
pub(crate) use prepared::{Prepared, PreparedInserts};
pub(crate) use questions::Questions;
pub(crate) use role::{role, Role};
