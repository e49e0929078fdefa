//! The settings of ClickHouse that change how a payload is read.

mod delimited;
mod format_schema;
mod json;
mod table;

use std::sync::Arc;

use crate::format::{families, Families, Format};
use crate::plan::Zones;
use crate::read::TimeSpelling;
use crate::zone::{is_same_zone, Zone, ZoneChange};
pub(crate) use delimited::DelimitedSettings;
use format_schema::FormatSchema;
pub use format_schema::InlineSchema;
use json::JsonSettings;
use table::{find, Effect, Known, Row};

/// The settings of reading, with ClickHouse's own defaults where nothing was set.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadSettings {
    /// The groups of settings that matter.
    families: Families,
    pub(crate) skip_unknown_fields: bool,
    pub(crate) null_as_default: bool,
    /// Says whether columns of a Native block may come in other types than their own.
    pub(crate) native_casts: bool,
    /// Says that values which ClickHouse would round or cut are not read.
    is_exact: bool,
    pub(crate) time_spelling: TimeSpelling,
    /// Says whether the backend is a database that takes SQL, and no ClickHouse.
    is_for_sql: bool,
    literals_are_sql: bool,
    /// Says whether floats are rounded correctly. Otherwise ClickHouse may be off in the last bit, so floats
    /// are not read.
    pub(crate) floats_are_precise: bool,
    pub(crate) delimited: DelimitedSettings,
    pub(crate) json: JsonSettings,
    format_schema: FormatSchema,
    /// Says whether an integer for a DateTime64 is the raw number of ticks, if that was set.
    datetime_number_is_raw: Option<bool>,
    version: ServerVersion,
    server_timezone: Option<String>,
    /// Zones whose rules the server has told.
    told_zones: Vec<(String, Arc<Zone>)>,
    /// The session's zone. ClickHouse applies it to some readings and not to others, so with another zone
    /// than the server's no local time is read.
    session_timezone: Option<String>,
    /// Says whether some setting has a value that the readers do not implement.
    refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServerVersion {
    major: u32,
    minor: u32,
}

/// The version from which on an integer for a DateTime64 is Unix seconds; before, it was the raw number of
/// ticks.
const DATETIME64_NUMBERS_ARE_SECONDS: ServerVersion = ServerVersion { major: 26, minor: 8 };

/// The effect of a setting on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingEffect {
    /// The readers do as the setting says, or it concerns other formats.
    Applied,
    /// The setting has nothing to do with reading.
    Irrelevant,
    /// The readers do not implement this value: forward the insert.
    NotParsed,
}

impl Default for ReadSettings {
    fn default() -> Self {
        ReadSettings {
            families: families::ALL,
            skip_unknown_fields: true,
            null_as_default: true,
            native_casts: true,
            is_exact: false,
            is_for_sql: false,
            literals_are_sql: false,
            time_spelling: TimeSpelling::BestEffort,
            floats_are_precise: true,
            delimited: DelimitedSettings::default(),
            json: JsonSettings::default(),
            format_schema: FormatSchema::default(),
            datetime_number_is_raw: None,
            version: ServerVersion { major: 26, minor: 7 },
            server_timezone: None,
            told_zones: Vec::new(),
            session_timezone: None,
            refused: false,
        }
    }
}

impl ReadSettings {
    /// Makes settings for payloads of one format. Settings of other formats have no effect, except for those
    /// of Native, since the rows go on as Native and under the same settings. The default is for any format.
    pub fn of(format: &Format) -> Self {
        ReadSettings { families: format.families.and(families::NATIVE), ..ReadSettings::default() }
    }

    /// Takes a setting as a request or the server's profile has it.
    pub fn set(&mut self, name: &str, value: &str) -> SettingEffect {
        let effect = match find(name) {
            Known::Irrelevant => SettingEffect::Irrelevant,
            Known::Unlisted => SettingEffect::NotParsed,
            Known::Listed(row) if !row.formats.meets(self.families) => SettingEffect::Applied,
            Known::Listed(row) => self.apply(row, value),
        };
        // Kept, so that a caller who goes on all the same reads nothing wrongly.
        self.refused |= effect == SettingEffect::NotParsed;
        effect
    }

    fn apply(&mut self, row: &Row, value: &str) -> SettingEffect {
        match row.effect {
            Effect::Nothing => SettingEffect::Applied,
            Effect::OnlyDefault => applied_if(normalized(value) == normalized(row.default)),
            Effect::SkipUnknownFields => assign(&mut self.skip_unknown_fields, value),
            Effect::NullAsDefault => assign(&mut self.null_as_default, value),
            Effect::NativeCasts => assign(&mut self.native_casts, value),
            Effect::DatetimeNumberIsRaw => {
                let mut is_raw = false;
                let effect = assign(&mut is_raw, value);
                self.datetime_number_is_raw = Some(is_raw);
                effect
            }
            Effect::Delimited(which) => self.delimited.set(which, value),
            Effect::Json(which) => self.json.set(which, value),
            Effect::FormatSchema(which) => self.format_schema.set(which, value),
            Effect::PreciseFloatParsing => assign(&mut self.floats_are_precise, value),
            Effect::DateTimeInputFormat => self.set_time_spelling(value),
            Effect::SessionTimezone => {
                self.session_timezone = Some(value.to_owned()).filter(|name| !name.is_empty());
                SettingEffect::Applied
            }
        }
    }

    /// Sets the server's `timezone()`, in which the times of columns are read that name no zone. Without it
    /// such times are not read.
    pub fn set_server_timezone(&mut self, name: &str) {
        self.server_timezone = Some(name.to_string());
    }

    /// Sets the rules of a zone as the server has them: its offset at the first of `changes` and from each
    /// change on, until `end_utc_second`. Without them only zones are read whose rules are beyond doubt.
    pub fn set_zone(&mut self, name: &str, changes: &[ZoneChange], end_utc_second: i64) {
        self.told_zones.retain(|(known, _)| known != name);
        self.told_zones.push((name.to_string(), Arc::new(Zone::told(changes, end_utc_second))));
    }

    /// Returns the schema that the insert itself carries.
    pub fn inline_schema(&self) -> Option<InlineSchema<'_>> {
        self.format_schema.inline()
    }

    /// Refuses values from now on that the column's type can't hold as they are: ClickHouse would cut
    /// fractions of seconds and round floats.
    pub fn keep_exact(&mut self) {
        self.is_exact = true;
    }

    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Reads from now on for a database that takes SQL:
    ///
    /// - A date is any of the years 0000 to 9999, of which ClickHouse has some.
    /// - NULL in place of an array, a map or a tuple is the empty one.
    /// - Where `literals_are_sql`, a literal with a backslash is not read: its meaning is the database's to
    ///   say. Literals are SQL behind VALUES, and not behind FORMAT Values.
    pub fn read_for_sql(&mut self, literals_are_sql: bool) {
        (self.is_for_sql, self.literals_are_sql) = (true, literals_are_sql);
    }

    pub(crate) fn literals_are_sql(&self) -> bool {
        self.literals_are_sql
    }

    pub fn is_for_sql(&self) -> bool {
        self.is_for_sql
    }

    pub fn null_as_default(&self) -> bool {
        self.null_as_default
    }

    pub fn skips_unknown_fields(&self) -> bool {
        self.skip_unknown_fields
    }

    /// Sets the first two numbers of the server's `version()`. They are taken as 26.7 if never told.
    pub fn set_server_version(&mut self, major: u32, minor: u32) {
        self.version = ServerVersion { major, minor };
    }

    fn set_time_spelling(&mut self, value: &str) -> SettingEffect {
        self.time_spelling = match value {
            "basic" => TimeSpelling::Basic,
            "best_effort" | "best_effort_us" => TimeSpelling::BestEffort,
            _ => return SettingEffect::NotParsed,
        };
        SettingEffect::Applied
    }

    /// Says whether local times mean something else for the session than for the server.
    pub fn is_in_another_zone(&self) -> bool {
        let (session, server) = (self.session_timezone.as_deref(), self.server_timezone.as_deref());
        session.is_some_and(|session| !server.is_some_and(|server| is_same_zone(session, server)))
    }

    pub(crate) fn refused(&self) -> bool {
        self.refused
    }

    /// Says whether an integer for a DateTime64 is stored as it is.
    pub(crate) fn numbers_are_ticks(&self) -> bool {
        self.datetime_number_is_raw.unwrap_or(self.version < DATETIME64_NUMBERS_ARE_SECONDS)
    }

    pub(crate) fn zones(&self) -> Zones {
        let server = self.server_timezone.as_deref().filter(|_| !self.is_in_another_zone());
        Zones::new(server.map(str::to_owned), &self.told_zones)
    }
}

/// A setting that changes how payloads are read, or is of no effect there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingSetting {
    pub name: &'static str,
    /// The default of ClickHouse 26.7.
    pub default: &'static str,
}

/// Returns all settings that are known here.
pub fn reading_settings() -> impl Iterator<Item = ReadingSetting> {
    table::rows().map(|row| ReadingSetting { name: row.name, default: row.default })
}

/// The entry of the table for a setting, where payloads of some formats stay text.
pub(crate) enum KnownDefault {
    /// The setting does not change how these formats are read.
    Irrelevant,
    /// The setting may change how they are read, going by its name, but it isn't in the table.
    Unknown,
    Is(&'static str),
}

pub(crate) fn known_default(name: &str, families: Families) -> KnownDefault {
    match find(name) {
        Known::Listed(row) if row.formats.meets(families) => KnownDefault::Is(row.default),
        Known::Listed(_) | Known::Irrelevant => KnownDefault::Irrelevant,
        Known::Unlisted => KnownDefault::Unknown,
    }
}

fn applied_if(holds: bool) -> SettingEffect {
    if holds {
        SettingEffect::Applied
    } else {
        SettingEffect::NotParsed
    }
}

fn assign(target: &mut bool, value: &str) -> SettingEffect {
    match normalized(value) {
        "1" => *target = true,
        "0" => *target = false,
        _ => return SettingEffect::NotParsed,
    }
    SettingEffect::Applied
}

/// Returns `1` and `0` for `true` and `false`, as ClickHouse takes one for the other.
fn normalized(value: &str) -> &str {
    match value {
        value if value.eq_ignore_ascii_case("true") => "1",
        value if value.eq_ignore_ascii_case("false") => "0",
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_applied_forwarded_or_none_of_our_business() {
        let cases = [
            ("input_format_skip_unknown_fields", "0", SettingEffect::Applied),
            ("input_format_skip_unknown_fields", "true", SettingEffect::Applied),
            ("input_format_skip_unknown_fields", "maybe", SettingEffect::NotParsed),
            ("input_format_null_as_default", "false", SettingEffect::Applied),
            ("input_format_import_nested_json", "0", SettingEffect::Applied),
            ("input_format_import_nested_json", "1", SettingEffect::Applied),
            ("input_format_json_map_as_array_of_tuples", "0", SettingEffect::Applied),
            ("input_format_json_map_as_array_of_tuples", "1", SettingEffect::NotParsed),
            ("input_format_json_invented_tomorrow", "0", SettingEffect::NotParsed),
            ("input_format_invented_tomorrow", "0", SettingEffect::NotParsed),
            ("input_format_parquet_whatever", "3", SettingEffect::NotParsed),
            ("format_csv_delimiter", ";", SettingEffect::Applied),
            ("input_format_native_allow_types_conversion", "0", SettingEffect::Applied),
            ("input_format_native_decode_types_in_binary_format", "1", SettingEffect::NotParsed),
            ("date_time_input_format", "basic", SettingEffect::Applied),
            ("date_time_input_format", "other", SettingEffect::NotParsed),
            ("session_timezone", "Asia/Tokyo", SettingEffect::Applied),
            ("precise_float_parsing", "0", SettingEffect::Applied),
            ("allow_experimental_json_type", "1", SettingEffect::Irrelevant),
            ("max_insert_block_size", "1", SettingEffect::Irrelevant),
            ("log_comment", "x", SettingEffect::Irrelevant),
        ];
        for (name, value, expected) in cases {
            let mut settings = ReadSettings::of(Format::named("JSONEachRow").unwrap());
            assert_eq!(settings.set(name, value), expected, "{name} = {value}");
        }
    }

    #[test]
    fn no_setting_is_listed_twice() {
        for setting in reading_settings() {
            assert_eq!(reading_settings().filter(|other| other.name == setting.name).count(), 1, "{}", setting.name);
        }
    }
}
