//! An insert's way from its request to the gatherer and back to its answer.

mod answer_form;
mod asked;
mod asking;
mod dedup_plan;
mod dedup_settings;
mod logged_query;
mod not_taken;
mod own_settings;
mod prepare;
mod prepare_asked;
mod prepare_opaque;
mod prepared;
mod query_settings;
mod questions;
mod read;
mod role;
mod ways;

pub(crate) use answer_form::AnswerForm;
pub(crate) use asked::memory_to_ask;
pub(crate) use asking::{Answer, Asking};
pub(crate) use dedup_plan::{identities, DedupPlan};
pub(crate) use dedup_settings::{is_dedup_setting, switched_on, DedupSettings, DefaultProfile, TOKEN};
pub(crate) use logged_query::is_of_one_insert;
pub(crate) use not_taken::{not_taken, too_large, unreadable};
pub(crate) use own_settings::Said;
pub(crate) use prepare::{canonical_database, prepare, InsertRequest, PrepareWith};
pub(crate) use prepared::{Prepared, PreparedInserts};
pub(crate) use questions::Questions;
pub(crate) use role::{role, Role};
pub(crate) use ways::{Gatherable, Kinship, NotGatherable, Unread};
