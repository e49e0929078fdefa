//! Steps that decide whether ClickHouse may be asked to read the payloads of a statement that can't be read
//! here for certain, and how; and whether blocks with types that are not known here may pass through.

use std::sync::Arc;

use windrow_columns::{ColumnSpec, Format, PassthroughFormat, ReadSettings, SettingEffect};
use windrow_engine::{
    sink::{Destination, Form},
    InsertKind,
};

use super::backend_reader::{BackendReader, ReadAs};
use super::blocks::BlocksPlan;
use super::prepare_passthrough::{carried_settings, kind_of_small_batches};
use super::readers::{JoinPlan, ParsingReader, PassthroughReader};
use crate::admission::{refuse_casts, Target, UserContext};
use crate::forward_reason::ForwardReason;

/// Bound of a payload that ClickHouse is asked to read. Larger ones make good parts, and are forwarded.
const MAX_PAYLOAD_BYTES: u64 = 1 << 20;

/// Formats that have no reader here. Their payloads need nothing but the settings of the insert to be read.
const WITHOUT_A_READER: &[&str] = &[
    "BSONEachRow",
    "Buffers",
    "CustomSeparated",
    "CustomSeparatedIgnoreSpaces",
    "CustomSeparatedIgnoreSpacesWithNames",
    "CustomSeparatedIgnoreSpacesWithNamesAndTypes",
    "CustomSeparatedWithNames",
    "CustomSeparatedWithNamesAndTypes",
    "Form",
    "MySQLDump",
    "Npy",
    "ORC",
    "ProtobufList",
    "Regexp",
    "Template",
    "TemplateIgnoreSpaces",
];

pub(super) fn may_be_asked_for(format_name: &str, format: Option<&'static Format>) -> bool {
    format.is_some() || WITHOUT_A_READER.iter().any(|known| known.eq_ignore_ascii_case(format_name))
}

/// Facts about a statement that decide whether and how ClickHouse is asked to read its payloads.
pub(super) struct BackendReaderRequest<'a> {
    pub(super) format_name: &'a str,
    pub(super) targets: &'a [Target],
    pub(super) user: &'a UserContext,
    /// Settings of the request that change what is written or read.
    pub(super) settings: &'a [(&'a str, &'a str)],
    /// Settings of the request that say how values become text.
    pub(super) formatting: &'a [(&'a str, &'a str)],
    /// Says whether the table computes something.
    pub(super) computes: bool,
    /// The database that the request names.
    pub(super) database: Option<&'a str>,
    pub(super) kind: &'a InsertKind,
    pub(super) parsing: Result<&'a ParsingReader, ForwardReason>,
    /// Says whether a repeat of rows that are not read here would be recognised, if that is asked for.
    pub(super) takes_unread_rows: bool,
}

impl BackendReaderRequest<'_> {
    /// Makes the reader. `None`: the answer might not be what ClickHouse would store.
    pub(super) fn reader(&self, destination: &Destination) -> Option<BackendReader> {
        // Beside a SELECT a column has no DEFAULT. Only VALUES can be seen to leave none to it.
        let has_defaults = self.targets.iter().any(Target::has_default);
        let is_values = self.format_name.eq_ignore_ascii_case("Values");
        if has_defaults && !is_values || self.may_drop_rows() {
            return None;
        }
        // The answer would have another form, and the request's own ones are left out.
        let is_of_native = |name: &str| name.starts_with("output_format_native_");
        if self.user.changed_settings.iter().any(|(name, _)| is_of_native(name)) {
            return None;
        }
        let (destination, taken) = match &self.parsing {
            Ok(parsing) => (parsing.destination.clone(), ReadAs::AsParsed),
            Err(_) => self.untyped(destination)?,
        };
        // Expressions format values, too.
        let formatting = self.formatting.iter().filter(|(name, _)| !is_of_native(name));
        let settings = self.settings.iter().chain(formatting);
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Some(BackendReader {
            format: self.format_name.to_owned(),
            taken,
            destination,
            settings: settings.collect(),
            database: self.database.map(str::to_owned),
            has_defaults,
            reads_expressions: is_values,
            max_payload_bytes: self.kind.limits.max_data_size_bytes.min(MAX_PAYLOAD_BYTES),
            not_parsed: self.parsing.as_ref().err().copied(),
        })
    }

    /// Makes the reader of blocks that stay as they came, for Native with types that are not known here.
    pub(super) fn blocks(&self, destination: &Destination) -> Option<PassthroughReader> {
        let is_native = self.format_name.eq_ignore_ascii_case(PassthroughFormat::BLOCKS);
        let instead_because = self.parsing.err().filter(|reason| is_native && *reason == ForwardReason::Type)?;
        if !self.takes_unread_rows || !self.native_is_plain() || !self.makes_one_block() {
            return None;
        }
        Some(PassthroughReader {
            plan: JoinPlan::Blocks(BlocksPlan::new(self.columns())),
            destination: self.own_destination(destination, blocks()),
            kind: Arc::new(kind_of_small_batches(self.kind)),
            instead_because: Some(instead_because),
        })
    }

    fn columns(&self) -> Vec<(String, String)> {
        self.targets.iter().map(|target| (target.name.clone(), target.type_name.clone())).collect()
    }

    /// Returns the destination and the form of rows if no payload of the statement is parsed here.
    fn untyped(&self, destination: &Destination) -> Option<(Arc<Destination>, ReadAs)> {
        if !self.native_is_plain() {
            return None;
        }
        let specs: Option<Vec<ColumnSpec>> = self.targets.iter().map(|target| target.spec.clone()).collect();
        if let Some(specs) = specs {
            let types = specs.iter().map(|column| column.data_type.clone()).collect();
            let mut destination = self.own_destination(destination, Form::Native { types });
            refuse_casts(&mut Arc::make_mut(&mut destination).settings, self.targets, self.user.version);
            return Some((destination, ReadAs::Columns(specs)));
        }
        if !self.takes_unread_rows || !self.makes_one_block() || !self.targets.iter().all(comes_back_whole) {
            return None;
        }
        let kind = Arc::new(kind_of_small_batches(self.kind));
        Some((self.own_destination(destination, blocks()), ReadAs::Blocks { columns: self.columns(), kind }))
    }

    /// Makes a destination with all settings of the request that the flush carries.
    fn own_destination(&self, destination: &Destination, form: Form) -> Arc<Destination> {
        let settings = carried_settings(self.settings, if self.computes { self.formatting } else { &[] });
        Arc::new(Destination { form, settings, ..destination.clone() })
    }

    fn all_settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let profile = self.user.effective_settings.iter().chain(&self.user.changed_settings);
        profile.map(|(name, value)| (name.as_str(), value.as_str())).chain(self.settings.iter().copied())
    }

    /// Says whether no setting bears on how Native is read.
    fn native_is_plain(&self) -> bool {
        let Some(native) = Format::named("Native") else { return false };
        let mut read = ReadSettings::of(native);
        self.all_settings().all(|(name, value)| read.set(name, value) != SettingEffect::NotParsed)
    }

    /// Says whether ClickHouse makes one block of a batch, so that an error means that no row is stored.
    fn makes_one_block(&self) -> bool {
        const BY_BYTES: [&str; 2] = ["max_insert_block_size_bytes", "min_insert_block_size_bytes"];
        let settings = self.user.changed_settings.iter().map(|(name, _)| name.as_str());
        !settings.chain(self.settings.iter().map(|(name, _)| *name)).any(|name| BY_BYTES.contains(&name))
    }

    /// Says whether there is a setting under which a SELECT returns fewer rows without an error, while an
    /// INSERT ignores it.
    fn may_drop_rows(&self) -> bool {
        let drops = |name: &str| {
            matches!(name, "limit" | "offset" | "additional_table_filters" | "additional_result_filter")
                || name.contains("_overflow_mode")
        };
        let in_profile = self.user.changed_settings.iter().map(|(name, _)| name.as_str());
        in_profile.chain(self.settings.iter().map(|(name, _)| *name)).any(drops)
    }
}

fn blocks() -> Form {
    Form::Text { format: PassthroughFormat::BLOCKS, header: Vec::new() }
}

/// Says whether values of the column come back unchanged. Of a versioned state of an aggregate function,
/// Native over HTTP has the oldest version.
fn comes_back_whole(target: &Target) -> bool {
    let mut states = target.type_name.split("AggregateFunction(").skip(1);
    !states.any(|arguments| arguments.starts_with(|letter: char| letter.is_ascii_digit()))
}
