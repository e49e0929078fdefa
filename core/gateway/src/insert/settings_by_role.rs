//! Settings of an insert, sorted by the purpose of each.

use std::sync::Arc;

use windrow_columns::{ColumnSpec, Format, ReadPlans, ReadSettings, SettingEffect};
use windrow_engine::sink::{Destination, Form, Partitioning};

use super::answer_form::AnswerForm;
use super::dedup_settings::{recognised, DedupSettings, THROUGH_VIEWS};
use super::own_settings::RequestedSettings;
use super::query_settings::QuerySettings;
use super::readers::ParsingReader;
use super::role::{is_surely_taken, role, Role};
use crate::admission::{refuse_casts, NotAdmitted, TableSchema, Target, UserContext};
use crate::forward_reason::ForwardReason;

/// Settings of a request, sorted by their purpose.
#[derive(Default)]
pub(super) struct SettingsByRole<'a> {
    gathering: Vec<(&'a str, &'a str)>,
    /// Settings that inserts must share to be in one batch, sorted by name, one of each.
    pub(super) shape: Vec<(&'a str, &'a str)>,
    pub(super) formatting: Vec<(&'a str, &'a str)>,
    /// Settings that say how values become text, sorted by name, one of each.
    pub(super) query: QuerySettings<'a>,
    pub(super) dedup: DedupSettings<'a>,
    /// Settings that the flush does not carry. ClickHouse is to see them once all the same: it may refuse a name or a
    /// value.
    pub(super) others: Vec<(&'a str, &'a str)>,
    pub(super) is_values_clause: bool,
}

impl<'a> SettingsByRole<'a> {
    pub(super) fn new(settings: &'a [(String, String)]) -> Result<SettingsByRole<'a>, NotAdmitted> {
        let mut by_role = SettingsByRole::default();
        for (name, value) in settings {
            by_role.query.set(name, value);
            match role(name) {
                // Such names stand in a URL to say something else, and are no settings in a statement.
                Role::Request => return Err(NotAdmitted::Forward(ForwardReason::Setting)),
                Role::Query => {}
                Role::Harmless if !is_surely_taken(name, value) => {
                    return Err(NotAdmitted::Forward(ForwardReason::Setting))
                }
                Role::Private | Role::Harmless => by_role.others.push((name, value)),
                Role::Windrow => by_role.gathering.push((name, value)),
                Role::Gathering => {
                    by_role.gathering.push((name, value));
                    if name != "async_insert" {
                        by_role.others.push((name, value));
                    }
                }
                Role::Formatting => by_role.formatting.push((name, value)),
                Role::Deduplication => {
                    by_role.dedup.set(name, value);
                    if name != "insert_deduplication_token" {
                        by_role.others.push((name, value));
                    }
                }
                Role::Alone => return Err(NotAdmitted::Forward(ForwardReason::Setting)),
                Role::Shape => by_role.shape.push((name, value)),
            }
        }
        by_role.dedup.check().map_err(|_| NotAdmitted::Forward(ForwardReason::Setting))?;
        // There may be tens of thousands, of somebody who is not known yet.
        keep_the_last(&mut by_role.shape);
        keep_the_last(&mut by_role.formatting);
        Ok(by_role)
    }

    /// Says whether a quorum of replicas is to have the rows of one INSERT before the next one begins, which
    /// ClickHouse's own asynchronous inserts refuse.
    pub(super) fn asks_for_serial_quorum(&self, user: &UserContext) -> bool {
        const PARALLEL: &str = "insert_quorum_parallel";
        let says_so = self.shape.iter().any(|(name, _)| name.starts_with("insert_quorum"));
        let is_serial = matches!(self.setting(PARALLEL, user), Some("0" | "false"));
        // One replica is no quorum.
        says_so && is_serial && !matches!(self.setting("insert_quorum", user), None | Some("0" | "1"))
    }

    /// Says whether local times mean something else for the session than for the server.
    pub(super) fn is_in_another_zone(&self, user: &UserContext) -> bool {
        const ZONE: &str = "session_timezone";
        let mut read = ReadSettings::default();
        read.set_server_timezone(&user.timezone);
        self.setting(ZONE, user).is_some_and(|zone| {
            read.set(ZONE, zone);
            read.is_in_another_zone()
        })
    }

    /// Returns the settings about gathering: the protocol's go before the request's, and those before the
    /// profile's. The profile doesn't decide whether to gather at all: ClickHouse versions differ in their
    /// default, and the operator has `[[tables]]` for it.
    pub(super) fn requested(
        &self,
        user: &UserContext,
        by_protocol: Option<&RequestedSettings>,
    ) -> Result<RequestedSettings, NotAdmitted> {
        let mut requested = RequestedSettings::default();
        let profile = user.changed_settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let profile = profile.filter(|(name, _)| role(name) == Role::Gathering && *name != "async_insert");
        for (name, value) in profile.chain(self.gathering.iter().copied()) {
            requested.set(name, value).map_err(|_| NotAdmitted::Forward(ForwardReason::Setting))?;
        }
        Ok(match by_protocol {
            Some(by_protocol) => by_protocol.clone().or(requested),
            None => requested,
        })
    }

    /// Makes the reader that parses payloads. Fails with the reason why they can't be parsed.
    pub(super) fn parsing_reader(
        &mut self,
        format: Option<&'static Format>,
        targets: &[Target],
        user: &UserContext,
        destination: &Destination,
        computes: bool,
        plans: &ReadPlans,
    ) -> Result<ParsingReader, ForwardReason> {
        let columns: Vec<ColumnSpec> =
            targets.iter().map(|target| target.spec.clone()).collect::<Option<_>>().ok_or(ForwardReason::Type)?;
        let format = format.ok_or(ForwardReason::Format)?;
        let read_settings = self.read_settings(format, user)?;
        let mut settings = self.written_settings(format, computes);
        refuse_casts(&mut settings, targets, user.version);
        let destination = Arc::new(Destination {
            form: Form::Native { types: columns.iter().map(|column| column.data_type.clone()).collect() },
            settings,
            ..destination.clone()
        });
        let has_to_be_given = targets.iter().enumerate().filter(|(_, target)| target.has_to_be_given);
        let has_to_be_given = has_to_be_given.map(|(at, _)| at).collect();
        let plan = plans.plan(columns, read_settings);
        Ok(ParsingReader { format, plan, destination, has_to_be_given, takes_any_size: false })
    }

    /// Collects the settings that payloads are read under. Fails when one asks for a way of reading that is
    /// not implemented here.
    fn read_settings(&self, format: &Format, user: &UserContext) -> Result<ReadSettings, ForwardReason> {
        let mut read = ReadSettings::of(format);
        read.set_server_version(user.version.major, user.version.minor);
        read.set_server_timezone(&user.timezone);
        if user.is_for_sql {
            read.read_for_sql(self.is_values_clause);
        }
        let profile = user.effective_settings.iter().chain(&user.changed_settings);
        let profile = profile.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in profile.chain(self.shape.iter().copied()) {
            if read.set(name, value) == SettingEffect::NotParsed {
                return Err(ForwardReason::Setting);
            }
        }
        Ok(read)
    }

    /// Returns the settings that the flush has to carry. A setting that only changes how a payload is read
    /// has done its work by then, unless the table computes something: expressions convert and format values
    /// under the same settings.
    fn written_settings(&mut self, format: &Format, computes: bool) -> Vec<(String, String)> {
        let only_read = |name: &str, value: &str| {
            name != "session_timezone" && ReadSettings::of(format).set(name, value) == SettingEffect::Applied
        };
        let is_written = |setting: &&(&str, &str)| computes || !only_read(setting.0, setting.1);
        let mut written: Vec<_> = self.shape.iter().filter(is_written).copied().collect();
        self.others.extend(self.shape.iter().filter(|setting| !is_written(setting)));
        match computes {
            true => written.extend(&self.formatting),
            false => self.others.extend(&self.formatting),
        }
        written.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    pub(super) fn answer_form(&self, user: &UserContext) -> AnswerForm {
        AnswerForm::new(|name| {
            let here = self.others.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value);
            here.or_else(|| user.setting(name))
        })
    }

    /// Switches `use_strict_insert_block_limits` off, as ClickHouse's asynchronous inserts do: a batch is all
    /// or nothing because ClickHouse takes it as one block.
    pub(super) fn ask_for_one_block(&mut self, user: &UserContext) {
        const LIMITS: &str = "use_strict_insert_block_limits";
        if self.setting(LIMITS, user).is_some_and(|value| value != "0") {
            self.shape.retain(|(name, _)| *name != LIMITS);
            self.shape.push((LIMITS, "0"));
            self.shape.sort_unstable();
        }
    }

    /// Lets ClickHouse recognise the batch when it comes again, also behind views. The insert's own setting
    /// for views is about a repeat of the insert, which is recognised here.
    pub(super) fn let_it_be_recognised(&mut self, user: &UserContext, has_views: bool) {
        let switches_off =
            |(name, value): &&mut (&str, &str)| *name == THROUGH_VIEWS && matches!(*value, "0" | "false");
        if has_views {
            self.shape.iter_mut().filter(switches_off).for_each(|(_, value)| *value = "1");
        }
        let mut more = recognised(user, has_views);
        more.retain(|(name, _)| self.shape.iter().all(|(said, _)| said != name));
        self.shape.extend(more);
        self.shape.sort_unstable();
    }

    /// Returns the value that a setting which changes the written rows has for this insert.
    fn setting<'s>(&'s self, name: &str, user: &'s UserContext) -> Option<&'s str> {
        let here = self.shape.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        here.or_else(|| user.setting(name))
    }

    pub(super) fn partitioning(&self, schema: &TableSchema, user: &UserContext) -> Option<Partitioning> {
        let key = schema.partition_key(&user.timezone);
        schema.is_partitioned().then(|| Partitioning { key, max_per_insert: self.max_partitions(user) })
    }

    /// Returns the bound of a batch's partitions. An insert that has too many by itself is refused anyway.
    fn max_partitions(&self, user: &UserContext) -> Option<u64> {
        let max: u64 = self.setting("max_partitions_per_insert_block", user)?.parse().ok()?;
        let throws = self.setting("throw_on_max_partitions_per_insert_block", user) != Some("0");
        (throws && max > 0).then_some(max)
    }
}

/// Keeps the last setting of each name, and sorts the settings by name.
fn keep_the_last(settings: &mut Vec<(&str, &str)>) {
    settings.reverse();
    settings.sort_by_key(|(name, _)| *name);
    settings.dedup_by_key(|(name, _)| *name);
}
