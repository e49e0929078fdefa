//! Reads messages, field by field, into the table's columns.

use std::sync::Arc;

use windrow_columns::{ColumnData, CustomType, DataType, NotParsedReason, StringData, StringsEnd, TextValues};

use super::number::{number_form, push_number, read_integer};
use super::schema::{Enumeration, Field, Kind, Message, Scalar};
use super::Rules;
use crate::budget::Budget;
use crate::input::Input;
use crate::number_form::{Misfit, NumberForm};

/// A field of the rows, with the values read so far.
#[derive(Clone)]
pub(super) struct Growing {
    number: u32,
    /// The table's column that the field is, if it is a whole column.
    column: Option<usize>,
    kind: GrowingKind,
    rows: usize,
    /// NULL marks, for a column that accepts NULL: a field that is missing is NULL there.
    nulls: Option<Vec<u8>>,
    /// Says whether the present message has had the field.
    seen: bool,
}

#[derive(Clone)]
enum GrowingKind {
    Number {
        scalar: Scalar,
        form: NumberForm,
        data: Vec<u8>,
    },
    /// A number whose digits become a text.
    Digits {
        scalar: Scalar,
        texts: StringData,
    },
    Strings(StringData),
    FixedString {
        width: usize,
        data: Vec<u8>,
    },
    Text {
        values: Box<TextValues>,
        width: usize,
        absent: Absent,
        data: Vec<u8>,
    },
    Enum {
        entries: Arc<[EnumEntry]>,
        width: usize,
        data: Vec<u8>,
    },
    EnumName {
        names: Arc<Enumeration>,
        texts: StringData,
    },
    List {
        ends: Vec<u64>,
        inner: Box<Growing>,
    },
    Map {
        ends: Vec<u64>,
        pair: Vec<Growing>,
    },
    Message(Vec<Growing>),
    /// Messages whose fields are columns of the table: each is an Array there, all of the same lengths.
    Each {
        ends: Vec<u64>,
        fields: Vec<Growing>,
    },
}

#[derive(Clone)]
struct EnumEntry {
    number: i32,
    /// The value of the column's Enum. `None`: the column has no such name.
    value: Option<i16>,
}

/// The result for a text that is missing in a message.
#[derive(Clone, Copy, PartialEq)]
enum Absent {
    Zero,
    /// An error, since an empty text is none of the type's values.
    Refused,
}

/// State of reading a message, besides its fields.
pub(super) struct Reading {
    pub(super) budget: Budget,
    /// The column whose value can't be read.
    pub(super) failed: Option<usize>,
    /// Says whether ClickHouse refuses the message too.
    pub(super) is_refused: bool,
}

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

const BROKEN: NotParsedReason = NotParsedReason::Syntax;
type Read<T> = Result<T, NotParsedReason>;

impl Reading {
    pub(super) fn new(budget: Budget) -> Self {
        Reading { budget, failed: None, is_refused: false }
    }

    /// Returns the reason for a number that has no place. `rest` begins with the number.
    #[cold]
    fn misfit(&mut self, misfit: Misfit, wire: u64, rest: &[u8]) -> NotParsedReason {
        self.is_refused = match misfit {
            Misfit::Refused => true,
            Misfit::Broken => is_cut(wire, rest),
            Misfit::Doubtful => false,
        };
        match misfit {
            Misfit::Broken => BROKEN,
            _ => NotParsedReason::Value,
        }
    }

    #[cold]
    fn refuse<T>(&mut self) -> Read<T> {
        self.is_refused = true;
        Err(NotParsedReason::Value)
    }

    #[cold]
    pub(super) fn cut<T>(&mut self) -> Read<T> {
        self.is_refused = true;
        Err(BROKEN)
    }
}

impl Growing {
    /// Makes the reader of a field. Returns `None` where ClickHouse may read such a field into such a type in
    /// another way than its values suggest.
    pub(super) fn new(field: &Field, wanted: &DataType, rules: &Rules) -> Option<Self> {
        match (field.repeated, unwrapped(wanted)) {
            (true, DataType::Array(inner)) if !is_nullable(wanted) => {
                let element = Growing::single(field.number, &field.kind, inner, rules)?;
                let kind = GrowingKind::List { ends: Vec::new(), inner: Box::new(element) };
                Some(Growing::of(field.number, kind, false))
            }
            (true, _) => None,
            (false, _) => Growing::single(field.number, &field.kind, wanted, rules),
        }
    }

    /// Makes the reader of a message whose fields are columns of the table.
    pub(super) fn path(number: u32, fields: Vec<Growing>) -> Self {
        Growing::of(number, GrowingKind::Message(fields), false)
    }

    /// Makes the reader of a repeated message whose fields are columns of the table.
    pub(super) fn each(number: u32, fields: Vec<Growing>) -> Self {
        Growing::of(number, GrowingKind::Each { ends: Vec::new(), fields }, false)
    }

    pub(super) fn for_column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    fn of(number: u32, kind: GrowingKind, takes_null: bool) -> Self {
        Growing { number, column: None, kind, rows: 0, nulls: takes_null.then(Vec::new), seen: false }
    }

    fn single(number: u32, kind: &Kind, wanted: &DataType, rules: &Rules) -> Option<Self> {
        let takes_null = is_nullable(wanted);
        let wanted = unwrapped(wanted);
        let kind = match (kind, wanted) {
            (Kind::Scalar(Scalar::String | Scalar::Bytes), wanted) => text(wanted, rules)?,
            (Kind::Scalar(scalar), DataType::String)
                if rules.every_pair && !matches!(scalar, Scalar::Float | Scalar::Double | Scalar::Bool) =>
            {
                GrowingKind::Digits { scalar: *scalar, texts: StringData::default() }
            }
            (Kind::Scalar(scalar), wanted) => {
                let form = number_form(*scalar, wanted, rules)?;
                GrowingKind::Number { scalar: *scalar, form, data: Vec::new() }
            }
            (Kind::Enum(names), DataType::Enum8(values) | DataType::Enum16(values)) => {
                let value = |name: &str| values.iter().find(|entry| entry.name == name).map(|entry| entry.value);
                let entries =
                    names.values.iter().map(|known| EnumEntry { number: known.number, value: value(&known.name) });
                GrowingKind::Enum { entries: entries.collect(), width: wanted.fixed_width()?, data: Vec::new() }
            }
            (Kind::Enum(names), DataType::String) => {
                GrowingKind::EnumName { names: names.clone(), texts: StringData::default() }
            }
            (Kind::Enum(_), wanted) if rules.every_pair => {
                let form = number_form(Scalar::Int32, wanted, rules)?;
                GrowingKind::Number { scalar: Scalar::Int32, form, data: Vec::new() }
            }
            (Kind::Map(pair), DataType::Map(key, value)) => {
                let pair = pair.fields.iter().zip([key, value]);
                let pair = pair.map(|(field, wanted)| Growing::new(field, wanted, rules));
                GrowingKind::Map { ends: Vec::new(), pair: pair.collect::<Option<_>>()? }
            }
            (Kind::Message(message), DataType::Tuple(tuple)) if !takes_null => {
                let names = tuple.names.as_ref()?;
                GrowingKind::Message(elements(message, names, &tuple.elements, rules)?)
            }
            _ => return None,
        };
        Some(Growing::of(number, kind, takes_null))
    }

    #[inline]
    fn value(&mut self, wire: u64, input: &mut Input<'_>, reading: &mut Reading) -> Read<()> {
        match &mut self.kind {
            GrowingKind::List { inner, .. } => return inner.element(wire, input, reading),
            GrowingKind::Map { pair: fields, .. } | GrowingKind::Each { fields, .. } => {
                let mut inside = delimited(wire, input, reading)?;
                return message(fields, &mut inside, reading);
            }
            _ => {}
        }
        // ClickHouse takes the last of several, or makes something of all of them.
        if std::mem::replace(&mut self.seen, true) {
            return Err(NotParsedReason::DuplicateField);
        }
        self.push(wire, input, reading)
    }

    /// Reads an element of a list. Elements may come one by one or packed.
    fn element(&mut self, wire: u64, input: &mut Input<'_>, reading: &mut Reading) -> Read<()> {
        let own_wire = match &self.kind {
            GrowingKind::Number { scalar, .. } | GrowingKind::Digits { scalar, .. } => wire_of(*scalar),
            _ => return self.push(wire, input, reading),
        };
        if wire != DELIMITED {
            return self.push(wire, input, reading);
        }
        let mut packed = delimited(wire, input, reading)?;
        // No encoder writes such a one, and ClickHouse does not take it.
        if packed.is_empty() {
            return Err(NotParsedReason::Value);
        }
        while !packed.is_empty() {
            self.push(own_wire, &mut packed, reading)?;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, wire: u64, input: &mut Input<'_>, reading: &mut Reading) -> Read<()> {
        match &mut self.kind {
            GrowingKind::Number { scalar, form, data } => {
                if wire != wire_of(*scalar) {
                    return Err(NotParsedReason::Value);
                }
                let rest = input.rest();
                push_number(form, *scalar, input, data).map_err(|misfit| reading.misfit(misfit, wire, rest))?;
            }
            GrowingKind::Strings(texts) => texts.push(delimited(wire, input, reading)?.rest()),
            GrowingKind::Digits { scalar, texts } => {
                if wire != wire_of(*scalar) {
                    return Err(NotParsedReason::Value);
                }
                let rest = input.rest();
                let number = read_integer(*scalar, input).map_err(|misfit| reading.misfit(misfit, wire, rest))?;
                texts.push(number.to_string().as_bytes());
            }
            GrowingKind::FixedString { width, data } => {
                let text = delimited(wire, input, reading)?.rest();
                let Some(padding) = width.checked_sub(text.len()) else { return reading.refuse() };
                reading.budget.take(padding)?;
                data.extend_from_slice(text);
                data.resize(data.len() + padding, 0);
            }
            GrowingKind::Text { values, data, .. } => values.push(delimited(wire, input, reading)?.rest(), data)?,
            GrowingKind::Enum { entries, width, data } => {
                let number = enum_number(wire, input, reading)?;
                let entry = entries.iter().find(|entry| i64::from(entry.number) == number);
                let Some(value) = entry.and_then(|entry| entry.value) else { return Err(NotParsedReason::Value) };
                data.extend_from_slice(&value.to_le_bytes()[..*width]);
            }
            GrowingKind::EnumName { names, texts } => {
                let number = enum_number(wire, input, reading)?;
                let Some(value) = names.values.iter().find(|value| i64::from(value.number) == number) else {
                    return reading.refuse();
                };
                reading.budget.take(value.name.len())?;
                texts.push(value.name.as_bytes());
            }
            GrowingKind::Message(fields) => {
                let mut inside = delimited(wire, input, reading)?;
                message(fields, &mut inside, reading)?;
            }
            GrowingKind::List { .. } | GrowingKind::Map { .. } | GrowingKind::Each { .. } => {
                return Err(NotParsedReason::Value);
            }
        }
        self.rows += 1;
        if let Some(nulls) = &mut self.nulls {
            nulls.push(0);
        }
        Ok(())
    }

    /// Ends the present message.
    #[inline]
    pub(super) fn end(&mut self, reading: &mut Reading) -> Read<()> {
        match &mut self.kind {
            GrowingKind::List { ends, inner } => {
                ends.push(inner.rows as u64);
                self.rows += 1;
                Ok(())
            }
            GrowingKind::Map { ends, pair: fields } | GrowingKind::Each { ends, fields } => {
                ends.push(fields[0].rows as u64);
                self.rows += 1;
                Ok(())
            }
            _ if std::mem::take(&mut self.seen) => Ok(()),
            _ => self.absent(reading).inspect_err(|_| reading.failed = reading.failed.or(self.column)),
        }
    }

    fn absent(&mut self, reading: &mut Reading) -> Read<()> {
        reading.budget.take(16)?;
        self.rows += 1;
        let is_null = match &mut self.nulls {
            Some(nulls) => {
                nulls.push(1);
                true
            }
            None => false,
        };
        match &mut self.kind {
            GrowingKind::Number { form: NumberForm::Enum { values, width }, data, .. } if !is_null => {
                // Zero is what a message means that has no number.
                let Ok(_) = values.binary_search(&0) else { return Err(NotParsedReason::Value) };
                data.resize(data.len() + *width, 0);
            }
            GrowingKind::Number { form, data, .. } => data.resize(data.len() + form.width(), 0),
            GrowingKind::Digits { texts, .. } => texts.push(if is_null { b"" } else { b"0" }),
            GrowingKind::Strings(texts) => texts.push(b""),
            GrowingKind::FixedString { width, data } => {
                reading.budget.take(*width)?;
                data.resize(data.len() + *width, 0);
            }
            GrowingKind::Text { absent: Absent::Refused, .. } if !is_null => return Err(NotParsedReason::Value),
            GrowingKind::Text { width, data, .. } => data.resize(data.len() + *width, 0),
            GrowingKind::Enum { entries, width, data } => {
                let first = if is_null { Some(0) } else { entries.first().and_then(|entry| entry.value) };
                data.extend_from_slice(&first.ok_or(NotParsedReason::Value)?.to_le_bytes()[..*width]);
            }
            GrowingKind::EnumName { texts, .. } if is_null => texts.push(b""),
            GrowingKind::EnumName { names, texts } => {
                let first = names.values.first().ok_or(BROKEN)?;
                reading.budget.take(first.name.len())?;
                texts.push(first.name.as_bytes());
            }
            GrowingKind::Message(fields) => fields.iter_mut().try_for_each(|field| field.end(reading))?,
            GrowingKind::List { .. } | GrowingKind::Map { .. } | GrowingKind::Each { .. } => {}
        }
        Ok(())
    }

    /// Notes where all strings end, in the order in which `truncate` needs them.
    pub(super) fn note_strings(&self, ends: &mut Vec<StringsEnd>) {
        match &self.kind {
            GrowingKind::Strings(texts) | GrowingKind::Digits { texts, .. } | GrowingKind::EnumName { texts, .. } => {
                ends.push(texts.end());
            }
            GrowingKind::List { inner, .. } => inner.note_strings(ends),
            GrowingKind::Map { pair: fields, .. } | GrowingKind::Message(fields) | GrowingKind::Each { fields, .. } => {
                fields.iter().for_each(|field| field.note_strings(ends));
            }
            _ => {}
        }
    }

    /// Drops all rows but the first ones, and the begun part of another row.
    pub(super) fn truncate(&mut self, rows: usize, noted: &mut std::slice::Iter<'_, StringsEnd>) {
        self.seen = false;
        self.rows = self.rows.min(rows);
        if let Some(nulls) = &mut self.nulls {
            nulls.truncate(rows);
        }
        match &mut self.kind {
            GrowingKind::Number { form, data, .. } => data.truncate(rows * form.width()),
            GrowingKind::FixedString { width, data }
            | GrowingKind::Text { width, data, .. }
            | GrowingKind::Enum { width, data, .. } => data.truncate(rows * *width),
            GrowingKind::Strings(texts) | GrowingKind::Digits { texts, .. } | GrowingKind::EnumName { texts, .. } => {
                texts.truncate(rows, *noted.next().expect("every field of strings was noted"));
            }
            GrowingKind::List { ends, inner } => {
                ends.truncate(rows);
                inner.truncate(ends.last().map_or(0, |end| *end as usize), noted);
            }
            GrowingKind::Map { ends, pair: fields } | GrowingKind::Each { ends, fields } => {
                ends.truncate(rows);
                let inner = ends.last().map_or(0, |end| *end as usize);
                fields.iter_mut().for_each(|field| field.truncate(inner, noted));
            }
            GrowingKind::Message(fields) => fields.iter_mut().for_each(|field| field.truncate(rows, noted)),
        }
    }

    /// Returns where the rows of a list end.
    pub(super) fn list_ends(&self, column: usize) -> Option<&[u64]> {
        match &self.kind {
            GrowingKind::List { ends, .. } if self.column == Some(column) => Some(ends),
            GrowingKind::Message(fields) if self.column.is_none() => {
                fields.iter().find_map(|field| field.list_ends(column))
            }
            GrowingKind::Each { ends, fields } if fields.iter().any(|field| field.has(column)) => Some(ends),
            _ => None,
        }
    }

    fn has(&self, column: usize) -> bool {
        match &self.kind {
            _ if self.column.is_some() => self.column == Some(column),
            GrowingKind::Message(fields) | GrowingKind::Each { fields, .. } => {
                fields.iter().any(|field| field.has(column))
            }
            _ => false,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let values = match &self.kind {
            GrowingKind::Number { data, .. }
            | GrowingKind::FixedString { data, .. }
            | GrowingKind::Text { data, .. }
            | GrowingKind::Enum { data, .. } => data.len(),
            GrowingKind::Strings(texts) | GrowingKind::Digits { texts, .. } | GrowingKind::EnumName { texts, .. } => {
                texts.bytes()
            }
            GrowingKind::List { ends, inner } => 8 * ends.len() + inner.bytes(),
            GrowingKind::Map { ends, pair: fields } | GrowingKind::Each { ends, fields } => {
                8 * ends.len() + fields.iter().map(Growing::bytes).sum::<usize>()
            }
            GrowingKind::Message(fields) => fields.iter().map(Growing::bytes).sum(),
        };
        values + self.nulls.as_ref().map_or(0, Vec::len)
    }

    /// Returns the table's columns with their positions, and goes on without rows.
    pub(super) fn take_columns(&mut self, columns: &mut Vec<(usize, ColumnData)>) {
        match (self.column, &mut self.kind) {
            (Some(column), _) => columns.push((column, self.take())),
            (None, GrowingKind::Message(fields)) => {
                self.rows = 0;
                fields.iter_mut().for_each(|field| field.take_columns(columns));
            }
            (None, GrowingKind::Each { ends, fields }) => {
                self.rows = 0;
                let (ends, first) = (std::mem::take(ends), columns.len());
                fields.iter_mut().for_each(|field| field.take_columns(columns));
                for (_, data) in &mut columns[first..] {
                    let inner = Box::new(std::mem::replace(data, ColumnData::Fixed(Vec::new())));
                    *data = ColumnData::Array { offsets: ends.clone(), inner };
                }
            }
            (None, _) => {}
        }
    }

    fn take(&mut self) -> ColumnData {
        use std::mem::take;
        self.rows = 0;
        let values = match &mut self.kind {
            GrowingKind::Number { data, .. }
            | GrowingKind::FixedString { data, .. }
            | GrowingKind::Text { data, .. }
            | GrowingKind::Enum { data, .. } => ColumnData::Fixed(take(data)),
            GrowingKind::Strings(texts) | GrowingKind::Digits { texts, .. } | GrowingKind::EnumName { texts, .. } => {
                ColumnData::Strings(take(texts))
            }
            GrowingKind::List { ends, inner } => {
                ColumnData::Array { offsets: take(ends), inner: Box::new(inner.take()) }
            }
            GrowingKind::Map { ends, pair } => {
                let pair = pair.iter_mut().map(Growing::take).collect();
                ColumnData::Array { offsets: take(ends), inner: Box::new(ColumnData::Tuple(pair)) }
            }
            GrowingKind::Message(fields) => ColumnData::Tuple(fields.iter_mut().map(Growing::take).collect()),
            // It is no column itself.
            GrowingKind::Each { .. } => ColumnData::Tuple(Vec::new()),
        };
        match &mut self.nulls {
            Some(nulls) => ColumnData::Nullable { nulls: take(nulls), inner: Box::new(values) },
            None => values,
        }
    }
}

/// Reads a whole message. Fields that it lacks are ended as well.
#[inline]
pub(super) fn message(fields: &mut [Growing], input: &mut Input<'_>, reading: &mut Reading) -> Read<()> {
    // Fields mostly come in the order of their numbers, which is mostly that of the columns.
    let mut next = 0;
    while !input.is_empty() {
        let Some(tag) = input.varint() else { return reading.cut() };
        let (number, wire) = (tag >> 3, tag & 7);
        let is_number = |field: &Growing| u64::from(field.number) == number;
        let found = match fields.get(next) {
            Some(field) if is_number(field) => Some(next),
            _ => fields.iter().position(is_number),
        };
        match found {
            Some(index) => {
                next = index + 1;
                let field = &mut fields[index];
                if let Err(reason) = field.value(wire, input, reading) {
                    reading.failed = reading.failed.or(field.column);
                    return Err(reason);
                }
            }
            None if number == 0 || number > u64::from(u32::MAX >> 3) => return Err(BROKEN),
            None => skip(wire, input, reading)?,
        }
    }
    fields.iter_mut().try_for_each(|field| field.end(reading))
}

fn skip(wire: u64, input: &mut Input<'_>, reading: &mut Reading) -> Read<()> {
    let rest = input.rest();
    let skipped = match wire {
        VARINT => input.varint().map(drop),
        EIGHT_BYTES => input.take(8).map(drop),
        FOUR_BYTES => input.take(4).map(drop),
        _ => return delimited(wire, input, reading).map(drop),
    };
    match skipped {
        None if is_cut(wire, rest) => reading.cut(),
        skipped => skipped.ok_or(BROKEN),
    }
}

/// Says whether a value is cut off.
fn is_cut(wire: u64, rest: &[u8]) -> bool {
    match wire {
        VARINT => rest.len() < 10 && rest.iter().all(|byte| byte & 0x80 != 0),
        EIGHT_BYTES => rest.len() < 8,
        FOUR_BYTES => rest.len() < 4,
        _ => false,
    }
}

#[inline]
pub(super) fn delimited<'a>(wire: u64, input: &mut Input<'a>, reading: &mut Reading) -> Read<Input<'a>> {
    if wire != DELIMITED {
        return Err(NotParsedReason::Value);
    }
    let taken = input.varint().and_then(|length| input.take(usize::try_from(length).ok()?));
    match taken {
        Some(taken) => Ok(Input::new(taken)),
        None => reading.cut(),
    }
}

fn enum_number(wire: u64, input: &mut Input<'_>, reading: &mut Reading) -> Read<i64> {
    match (wire, input.varint()) {
        (VARINT, Some(number)) => Ok(number as i64),
        (VARINT, None) => reading.cut(),
        _ => Err(NotParsedReason::Value),
    }
}

fn text(wanted: &DataType, rules: &Rules) -> Option<GrowingKind> {
    Some(match wanted {
        DataType::String => GrowingKind::Strings(StringData::default()),
        DataType::FixedString(width) => GrowingKind::FixedString { width: *width, data: Vec::new() },
        wanted if *wanted == DataType::Uuid || rules.every_pair => {
            let absent = match wanted {
                DataType::Uuid | DataType::DateTime64 { .. } => Absent::Zero,
                _ => Absent::Refused,
            };
            let values = Box::new(TextValues::new(wanted, &rules.settings)?);
            GrowingKind::Text { values, width: wanted.fixed_width()?, absent, data: Vec::new() }
        }
        _ => return None,
    })
}

/// Returns the readers of a named tuple's elements, in its order. ClickHouse accepts other sets of fields
/// too, with defaults for fields that the schema lacks.
fn elements(message: &Message, names: &[String], wanted: &[DataType], rules: &Rules) -> Option<Vec<Growing>> {
    if names.len() != message.fields.len() && !rules.every_pair {
        return None;
    }
    let element = |(name, wanted): (&String, &DataType)| {
        let field = message.fields.iter().find(|field| field.name == *name)?;
        Growing::new(field, wanted, rules)
    };
    names.iter().zip(wanted).map(element).collect()
}

fn wire_of(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Fixed32 | Scalar::SFixed32 | Scalar::Float => FOUR_BYTES,
        Scalar::Fixed64 | Scalar::SFixed64 | Scalar::Double => EIGHT_BYTES,
        _ => VARINT,
    }
}

/// Says whether the type is a SimpleAggregateFunction. Its values are read like those of the type that is aggregated.
fn is_simple_aggregate_function(custom: &CustomType) -> bool {
    custom.name.starts_with("SimpleAggregateFunction(")
}

fn unwrapped(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::LowCardinality(inner) | DataType::Nullable(inner) => unwrapped(inner),
        DataType::Custom(custom) if is_simple_aggregate_function(custom) => unwrapped(&custom.inner),
        other => other,
    }
}

fn is_nullable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Nullable(_) => true,
        DataType::LowCardinality(inner) => is_nullable(inner),
        DataType::Custom(custom) if is_simple_aggregate_function(custom) => is_nullable(&custom.inner),
        _ => false,
    }
}
