//! An insert's way from its request to the gatherer and back to its answer.

mod answer_form;
mod asking;
mod backend_reader;
mod dedup_plan;
mod dedup_settings;
mod logged_query;
mod not_taken;
mod own_settings;
mod prepare;
mod prepare_backend_reader;
mod prepare_passthrough;
mod prepared;
mod query_settings;
mod questions;
mod read;
mod readers;
mod role;

pub(crate) use answer_form::AnswerForm;
pub(crate) use asking::{Answer, Asking};
pub(crate) use backend_reader::memory_to_ask;
pub(crate) use dedup_plan::{identities, DedupPlan};
pub(crate) use dedup_settings::{is_dedup_setting, switched_on, DedupSettings, DefaultProfile, TOKEN};
pub(crate) use logged_query::is_of_one_insert;
pub(crate) use not_taken::{not_taken, too_large, unreadable};
pub(crate) use own_settings::RequestedSettings;
pub(crate) use prepare::{canonical_database, prepare, InsertRequest, PrepareWith};
pub(crate) use prepared::{Prepared, PreparedInserts};
pub(crate) use questions::Questions;
pub(crate) use readers::{BatchCompatibility, Gatherable, NotGatherable, Unread};
pub(crate) use role::{role, Role};
