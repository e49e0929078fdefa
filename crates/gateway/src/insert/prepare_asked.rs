//! Whether ClickHouse may be asked to read the payloads of a statement that can't be read here for certain, and how.

use std::sync::Arc;

use windrow_block::{ColumnSpec, Format, ReadSettings, SettingEffect};
use windrow_sink::{Destination, Form};

use super::asked::AskedWay;
use super::ways::TypedWay;
use crate::admission::{Target, UserContext};

/// Larger payloads are parts worth having, and stay ClickHouse's.
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

/// What there is to know of a statement, for asking.
pub(super) struct AskedRequest<'a> {
    pub(super) format_name: &'a str,
    pub(super) targets: &'a [Target],
    pub(super) user: &'a UserContext,
    /// Settings of the request that change what is written or read.
    pub(super) settings: &'a [(&'a str, &'a str)],
    /// Settings of the request that say how values become text, where the table computes something.
    pub(super) formatting: &'a [(&'a str, &'a str)],
    /// The database that the request names.
    pub(super) database: Option<&'a str>,
    pub(super) max_data_size_bytes: u64,
    pub(super) typed: Result<&'a TypedWay, &'static str>,
}

impl AskedRequest<'_> {
    /// `None`: what comes back might not be what ClickHouse would store.
    pub(super) fn way(&self, destination: &Destination) -> Option<AskedWay> {
        let columns: Vec<ColumnSpec> = self.targets.iter().map(|target| target.spec.clone()).collect::<Option<_>>()?;
        // Beside a SELECT a column has no DEFAULT. Only VALUES can be seen to leave none to it.
        let has_defaults = self.targets.iter().any(Target::has_default);
        if has_defaults && !self.format_name.eq_ignore_ascii_case("Values") || self.may_drop_rows() {
            return None;
        }
        let destination = match &self.typed {
            Ok(typed) => typed.destination.clone(),
            Err(_) => Arc::new(self.own_destination(destination, &columns)?),
        };
        let settings = self.settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Some(AskedWay {
            format: self.format_name.to_owned(),
            columns,
            destination,
            settings: settings.collect(),
            database: self.database.map(str::to_owned),
            has_defaults,
            max_payload_bytes: self.max_data_size_bytes.min(MAX_PAYLOAD_BYTES),
            not_typed: self.typed.as_ref().err().copied(),
        })
    }

    /// Where rows go if there is no typed way: under all settings of the request, unless they bear on Native.
    fn own_destination(&self, destination: &Destination, columns: &[ColumnSpec]) -> Option<Destination> {
        let mut native = ReadSettings::of(Format::named("Native")?);
        let profile = self.user.effective_settings.iter().chain(&self.user.changed_settings);
        let profile = profile.map(|(name, value)| (name.as_str(), value.as_str()));
        let mut all = profile.chain(self.settings.iter().copied());
        if all.any(|(name, value)| native.set(name, value) == SettingEffect::NotTyped) {
            return None;
        }
        let settings = self.settings.iter().chain(self.formatting);
        Some(Destination {
            form: Form::Native { types: columns.iter().map(|column| column.data_type.clone()).collect() },
            settings: settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..destination.clone()
        })
    }

    /// Settings that an INSERT doesn't heed, and for which a SELECT shows fewer rows without an error.
    fn may_drop_rows(&self) -> bool {
        let drops = |name: &str| {
            matches!(name, "limit" | "offset" | "additional_table_filters" | "additional_result_filter")
                || name.ends_with("_overflow_mode")
        };
        let in_profile = self.user.changed_settings.iter().map(|(name, _)| name.as_str());
        in_profile.chain(self.settings.iter().map(|(name, _)| *name)).any(drops)
    }
}
