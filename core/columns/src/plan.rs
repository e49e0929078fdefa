use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::column::Column;
use crate::json_key::JsonKey;
use crate::paths::Paths;
use crate::read::NotParsedReason;
use crate::reader::Reader;
use crate::settings::ReadSettings;
use crate::types::DataType;
use crate::wire::write_varint;
use crate::zone::Zone;

/// The way in which a column gets its value when an insert leaves it out: DESCRIBE's `default_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DefaultKind {
    None,
    Default,
    Materialized,
    Alias,
    Ephemeral,
}

/// A column of the target table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnSpec {
    pub name: String,
    pub data_type: DataType,
    pub default_kind: DefaultKind,
}

/// The target columns of an insert, in order, with all rules by which bytes become values. Built once for a
/// table, column list and settings, and shared by many inserts.
pub struct ReadPlan {
    pub(crate) rules: Arc<ReadRules>,
    /// Says whether a field has been skipped since no column has its name.
    has_skipped: AtomicBool,
}

/// Rules that plans of tables with the same columns share.
pub(crate) struct ReadRules {
    columns: Box<[ColumnSpec]>,
    pub(crate) settings: ReadSettings,
    pub(crate) readers: Vec<ColumnReader>,
    by_name: HashMap<Vec<u8>, usize>,
    /// Positions of Array columns that must have equal lengths in each row, such as `n.a` and `n.b`.
    pub(crate) nested: Vec<Vec<usize>>,
    /// The tree of fields, where names with dots are places within JSON's objects.
    pub(crate) paths: Option<Paths>,
    /// The reason why no payload can be parsed at all.
    pub(crate) refusal: Option<NotParsedReason>,
}

pub(crate) struct ColumnReader {
    pub(crate) reader: Reader,
    pub(crate) has_default: bool,
    /// Says whether NULL is a value of the type, rather than a wish for the default.
    pub(crate) nullable: bool,
    pub(crate) key: JsonKey,
    /// The type as ClickHouse writes it.
    pub(crate) type_text: String,
    /// Name and type as a Native block has them, so that the expected next column is recognised by one
    /// comparison.
    pub(crate) native_header: Vec<u8>,
    /// The type without LowCardinality, if it has any, as Windrow itself sends it.
    pub(crate) plain: Option<PlainType>,
}

/// A column's type without any LowCardinality. Its values are laid out as those of the type.
pub(crate) struct PlainType {
    pub(crate) native_header: Vec<u8>,
    pub(crate) data_type: DataType,
}

impl PlainType {
    fn of(name: &str, data_type: &DataType) -> Option<PlainType> {
        let type_text = data_type.native_name();
        let plain = DataType::parse(&type_text).ok().filter(|plain| plain != data_type)?;
        let is_same_layout = Column::empty(&plain) == Column::empty(data_type);
        is_same_layout.then(|| PlainType { native_header: native_header(name, &type_text), data_type: plain })
    }
}

/// Makes plans. Plans with equal columns and settings share their rules: ten thousand tables of one kind need
/// the memory of one set of rules.
#[derive(Default)]
pub struct ReadPlans {
    hasher: RandomState,
    /// Rules by a hash of their columns.
    rules: Mutex<HashMap<u64, Vec<Weak<ReadRules>>>>,
}

/// The most different settings of the same columns whose rules are shared: they are compared one by one.
const MOST_SETTINGS: usize = 16;

impl ReadPlans {
    pub fn plan(&self, columns: Vec<ColumnSpec>, settings: ReadSettings) -> ReadPlan {
        let mut known = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.hasher.hash_one(&columns);
        let mut alike = known.get(&key).into_iter().flatten().filter_map(Weak::upgrade);
        let same = |rules: &Arc<ReadRules>| *rules.columns == *columns && rules.settings == settings;
        if let Some(rules) = alike.find(same) {
            return ReadPlan::with(rules);
        }
        if known.len() == known.capacity() {
            known.retain(|_, alike| alike.iter().any(|rules| rules.strong_count() > 0));
        }
        let plan = ReadPlan::new(columns, settings);
        let alike = known.entry(key).or_default();
        alike.retain(|rules| rules.strong_count() > 0);
        if alike.len() < MOST_SETTINGS {
            alike.push(Arc::downgrade(&plan.rules));
        }
        plan
    }
}

impl ReadPlan {
    pub fn new(columns: Vec<ColumnSpec>, settings: ReadSettings) -> Self {
        let nested = nested_groups(columns.iter().map(|column| column.name.as_str()), &columns);
        Self::of(columns, nested, None, settings)
    }

    /// Makes a plan for payloads whose fields have other names than the table's columns: `fields` are the
    /// columns under the names of their fields, `names` those that they have in the table. A field within an
    /// object is named with the objects around it, `event.time`; a field of a row that has this name as it
    /// stands is taken as well.
    pub fn of_fields<'n>(
        fields: Vec<ColumnSpec>,
        names: impl Iterator<Item = &'n str>,
        settings: ReadSettings,
    ) -> Self {
        let nested = nested_groups(names, &fields);
        let paths = Paths::new(fields.iter().map(|field| field.name.as_str()));
        Self::of(fields, nested, paths, settings)
    }

    fn of(columns: Vec<ColumnSpec>, nested: Vec<Vec<usize>>, paths: Option<Paths>, settings: ReadSettings) -> Self {
        let mut zones = settings.zones();
        let readers: Vec<ColumnReader> = columns
            .iter()
            .map(|column| ColumnReader {
                reader: Reader::new(&column.data_type, &mut zones),
                has_default: column.default_kind == DefaultKind::Default,
                nullable: column.data_type.is_nullable(),
                key: JsonKey::new(&column.name),
                type_text: column.data_type.to_string(),
                native_header: native_header(&column.name, &column.data_type.to_string()),
                plain: PlainType::of(&column.name, &column.data_type),
            })
            .collect();
        let by_name: HashMap<_, _> =
            columns.iter().enumerate().map(|(index, column)| (column.name.as_bytes().to_vec(), index)).collect();
        let refusal = refusal(&columns, by_name.len(), &settings);
        let columns = columns.into_boxed_slice();
        ReadPlan::with(Arc::new(ReadRules { columns, settings, readers, by_name, nested, paths, refusal }))
    }

    fn with(rules: Arc<ReadRules>) -> ReadPlan {
        ReadPlan { rules, has_skipped: AtomicBool::new(false) }
    }

    pub fn settings(&self) -> &ReadSettings {
        &self.rules.settings
    }

    pub fn columns(&self) -> &[ColumnSpec] {
        &self.rules.columns
    }

    /// Returns the column of exactly this name.
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        // Comparing a few names is faster than hashing one.
        if self.rules.columns.len() <= 16 {
            return self.rules.columns.iter().position(|column| column.name.as_bytes() == name);
        }
        self.rules.by_name.get(name).copied()
    }

    /// Returns the positions of Array columns that must have equal lengths in each row.
    pub fn nested_groups(&self) -> &[Vec<usize>] {
        &self.rules.nested
    }

    /// Returns the names of nested structures: the part before the dot of names like `n.a`.
    pub(crate) fn structures(&self) -> impl Iterator<Item = &str> {
        structures(&self.rules.columns)
    }

    /// Says whether some column's name might be taken for `name`: ClickHouse may ignore case, and its idea of
    /// case beyond ASCII is not ours to guess. If there is none, the plan notes that a field is skipped.
    pub fn resembles_a_column(&self, name: &[u8]) -> bool {
        let resembles = resembles(name, self.rules.columns.iter().map(|column| column.name.as_str()));
        // Only written once: every payload of a table with such fields comes by here, on any thread.
        if !resembles && !self.has_skipped() {
            self.has_skipped.store(true, Ordering::Relaxed);
        }
        resembles
    }

    /// Says whether some payload so far had a field with the name of no column. The table may have such a
    /// column by now.
    pub fn has_skipped(&self) -> bool {
        self.has_skipped.load(Ordering::Relaxed)
    }
}

/// Says whether one of `names` may differ from `name` at most in case. Beyond ASCII, where that isn't
/// certain, the answer is yes.
pub(crate) fn resembles<'n>(name: &[u8], mut names: impl Iterator<Item = &'n str>) -> bool {
    names.any(|known| known.as_bytes().eq_ignore_ascii_case(name) || !(known.is_ascii() && name.is_ascii()))
}

fn native_header(name: &str, type_text: &str) -> Vec<u8> {
    let mut header = Vec::with_capacity(name.len() + type_text.len() + 4);
    for text in [name, type_text] {
        write_varint(&mut header, text.len() as u64);
        header.extend_from_slice(text.as_bytes());
    }
    header
}

fn nested_groups<'n>(names: impl Iterator<Item = &'n str>, columns: &[ColumnSpec]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, (name, column)) in names.zip(columns).enumerate() {
        let (Some((prefix, _)), DataType::Array(_)) = (name.split_once('.'), column.data_type.plain()) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == prefix) {
            Some((_, group)) => group.push(index),
            None => groups.push((prefix, vec![index])),
        }
    }
    groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect()
}

fn structures(columns: &[ColumnSpec]) -> impl Iterator<Item = &str> {
    columns.iter().filter_map(|column| Some(column.name.split_once('.')?.0))
}

fn refusal(columns: &[ColumnSpec], distinct_names: usize, settings: &ReadSettings) -> Option<NotParsedReason> {
    let insertable = |column: &ColumnSpec| matches!(column.default_kind, DefaultKind::None | DefaultKind::Default);
    if columns.is_empty() || distinct_names != columns.len() || !columns.iter().all(insertable) {
        return Some(NotParsedReason::ColumnKind);
    }
    let unreadable = !settings.floats_are_precise && columns.iter().any(|column| column.data_type.contains_float());
    // ClickHouse takes such a key for the structure and leaves the column to its default.
    let is_structure = |column: &ColumnSpec| structures(columns).any(|structure| structure == column.name);
    let ambiguous = settings.json.import_nested && columns.iter().any(is_structure);
    (unreadable || ambiguous || settings.refused()).then_some(NotParsedReason::Setting)
}

/// The zones of a plan's columns. A zone that several columns use is built once.
pub(crate) struct Zones {
    /// The zone of columns whose type names no zone.
    default_name: Option<String>,
    built: HashMap<String, Arc<Zone>>,
}

impl Zones {
    pub(crate) fn new(default_name: Option<String>, told: &[(String, Arc<Zone>)]) -> Self {
        Zones { default_name, built: told.iter().cloned().collect() }
    }

    pub(crate) fn get(&mut self, name: Option<&str>) -> Arc<Zone> {
        let Some(name) = name.or(self.default_name.as_deref()) else {
            return Arc::new(Zone::Unknown);
        };
        if let Some(zone) = self.built.get(name) {
            return zone.clone();
        }
        let zone = Arc::new(Zone::named(name));
        self.built.insert(name.to_string(), zone.clone());
        zone
    }
}
