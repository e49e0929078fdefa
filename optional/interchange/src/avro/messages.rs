//! Reads one message of a topic after the other into the same columns: object container files, which bring
//! their schema along, and single rows in the registry's framing (a zero byte, the schema's id, the row).
//!
//! A message is read whole, or nothing of it stays. Columns whose field is missing in a schema are left out
//! by its rows.

use std::sync::Arc;

use windrow_columns::{
    BlockBuilder, ColumnData, DataType, DefaultKind, NotParsedReason, Parsed, Present, ReadPlan, SeriesError,
};

use super::container::Container;
use super::decode::{blocks, branch, skip, Value};
use super::schema::{self, Field, Kind, Type};
use super::BROKEN;
use crate::budget::Budget;
use crate::growing::{element_of, layout_of, GrowingColumns};
use crate::input::Input;

/// The steps by which rows of one schema become rows of the table.
pub struct AvroDecoder {
    steps: Vec<Step>,
    /// Columns without a field that have a DEFAULT expression; `zeros` has those without one.
    left_out: Vec<usize>,
    zeros: Vec<usize>,
    unused: Vec<String>,
}

/// A step in reading a row. `depth` is the number of lists of records that a field lies in; they are Arrays
/// of its column.
enum Step {
    Skip(Arc<Type>),
    Column {
        column: usize,
        depth: usize,
        value: Value,
    },
    /// A record whose fields are columns. The list of these columns is for rows where the record is null.
    Inside {
        null_branch: Option<u64>,
        depth: usize,
        steps: Vec<Step>,
        columns: Vec<usize>,
    },
    /// A list of such records. Columns of the same Nested that have no field get a zero for each.
    Each {
        null_branch: Option<u64>,
        depth: usize,
        steps: Vec<Step>,
        columns: Vec<usize>,
        zeros: Vec<usize>,
    },
    /// A union of one type.
    Only(Box<Step>),
}

impl AvroDecoder {
    /// Makes the decoder for a schema. The plan's columns are named by the paths of their fields.
    /// `is_required` says whether a column's field has to be in the schema.
    ///
    /// # Errors
    /// Fails where the schema can't be read, a required field is missing, or no column or a wrong type takes
    /// its fields.
    pub fn new(schema: &[u8], plan: &ReadPlan, is_required: &dyn Fn(usize) -> bool) -> Result<Self, String> {
        let fields = schema::record_of_messages(schema)?;
        let columns = plan.columns().len();
        let mut steps = Steps { plan, found: vec![false; columns], padded: vec![false; columns], unused: Vec::new() };
        let of_fields = steps.of(&fields, "", 0)?;
        let Steps { found, padded, unused, .. } = steps;
        let missing: Vec<usize> = (0..columns).filter(|column| !found[*column]).collect();
        if let Some(column) = missing.iter().find(|column| is_required(**column)) {
            return Err(format!("Field {} not found in Avro schema", plan.columns()[*column].name));
        }
        if missing.len() == columns {
            return Err("no column of the table takes a field of the Avro schema".to_owned());
        }
        let missing = missing.into_iter().filter(|column| !padded[*column]);
        let (left_out, zeros) = missing.partition(|column| has_default(plan, *column));
        Ok(AvroDecoder { steps: of_fields, left_out, zeros, unused })
    }

    /// Returns the fields that no column takes, with dots where they lie in others. A field inside another
    /// one is named only if a neighbour is taken.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }
}

/// Returns the schema at the head of a file.
pub fn avro_schema(file: &[u8]) -> Option<&[u8]> {
    Container::open(file).map(|container| container.schema)
}

fn has_default(plan: &ReadPlan, column: usize) -> bool {
    plan.columns()[column].default_kind == DefaultKind::Default
}

struct Steps<'p> {
    plan: &'p ReadPlan,
    /// Says of each column whether a field was found for it.
    found: Vec<bool>,
    /// Says of each other column whether it gets zeros beside such a column.
    padded: Vec<bool>,
    unused: Vec<String>,
}

impl Steps<'_> {
    fn of(&mut self, fields: &[Field], prefix: &str, depth: usize) -> Result<Vec<Step>, String> {
        fields.iter().map(|field| self.step(&field.data_type, &format!("{prefix}{}", field.name), depth)).collect()
    }

    fn step(&mut self, from: &Arc<Type>, path: &str, depth: usize) -> Result<Step, String> {
        if let Kind::Union(branches) = &from.kind {
            if let [only] = branches.as_slice() {
                return Ok(Step::Only(Box::new(self.step(only, path, depth)?)));
            }
        }
        if let Some(column) = self.plan.position(path.as_bytes()) {
            return self.column(column, from, path, depth);
        }
        let prefix = format!("{path}.");
        let within = |column: &usize| self.plan.columns()[*column].name.starts_with(&prefix);
        let columns: Vec<usize> = (0..self.plan.columns().len()).filter(within).collect();
        let Some(first) = columns.first() else {
            self.unused.push(path.to_owned());
            return Ok(Step::Skip(from.clone()));
        };
        let null_branch = null_branch(from);
        match &from.not_null().kind {
            Kind::Record(fields) => {
                let steps = self.of(fields, &prefix, depth)?;
                let columns = columns.into_iter().filter(|column| self.found[*column]).collect();
                Ok(Step::Inside { null_branch, depth, steps, columns })
            }
            Kind::Array(element) if matches!(element.not_null().kind, Kind::Record(_)) => {
                let steps = vec![self.step(element, path, depth + 1)?];
                let (columns, others): (Vec<_>, Vec<_>) = columns.into_iter().partition(|column| self.found[*column]);
                let is_padded = |column: &usize| {
                    let is_array = element_of(&self.plan.columns()[*column].data_type, depth + 1).is_some();
                    is_array && !has_default(self.plan, *column)
                };
                let zeros: Vec<usize> = others.into_iter().filter(is_padded).collect();
                zeros.iter().for_each(|column| self.padded[*column] = true);
                Ok(Step::Each { null_branch, depth, steps, columns, zeros })
            }
            _ => Err(format!(
                "column {} would lie in field {path} ({}), whose parts are not read",
                self.plan.columns()[*first].name,
                from.name()
            )),
        }
    }

    fn column(&mut self, column: usize, from: &Arc<Type>, path: &str, depth: usize) -> Result<Step, String> {
        let data_type = &self.plan.columns()[column].data_type;
        let wanted = element_of(data_type, depth);
        let null_as_default = self.plan.settings().null_as_default();
        let value = wanted.and_then(|wanted| Value::new(from, wanted, null_as_default)).ok_or_else(|| {
            let around = if depth > 0 { " in a list of records" } else { "" };
            format!("field {path} ({}){around} can't be read into a column of type {data_type}", from.name())
        })?;
        self.found[column] = true;
        collect_unused(from, wanted.unwrap_or(data_type), path, &mut self.unused);
        Ok(Step::Column { column, depth, value })
    }
}

fn null_branch(from: &Type) -> Option<u64> {
    match &from.kind {
        Kind::Nullable { null_branch, .. } => Some(*null_branch),
        _ => None,
    }
}

/// Collects the fields inside a field that is a column, as far as the column's type has no place for them.
fn collect_unused(from: &Type, wanted: &DataType, path: &str, unused: &mut Vec<String>) {
    match (&from.not_null().kind, layout_of(wanted)) {
        (_, DataType::Nullable(wanted)) => collect_unused(from, wanted, path, unused),
        (Kind::Array(inner), DataType::Array(wanted)) | (Kind::Map(inner), DataType::Map(_, wanted)) => {
            collect_unused(inner, wanted, path, unused);
        }
        (Kind::Record(fields), DataType::Tuple(tuple)) => {
            for (at, field) in fields.iter().enumerate() {
                let path = format!("{path}.{}", field.name);
                let element = match &tuple.names {
                    Some(names) => names.iter().position(|name| *name == field.name),
                    None => Some(at),
                };
                match element.and_then(|element| tuple.elements.get(element)) {
                    Some(wanted) => collect_unused(&field.data_type, wanted, &path, unused),
                    None => unused.push(path),
                }
            }
        }
        _ => {}
    }
}

/// The rows that were read so far.
pub struct AvroRows<'p> {
    plan: &'p ReadPlan,
    columns: GrowingColumns,
    rows: usize,
    /// Columns with a DEFAULT expression that all rows so far have left out.
    left_out: Present,
    /// The schema of the latest file as it stood there, with its decoder: the next file mostly has the same schema.
    latest: Option<(Vec<u8>, Arc<AvroDecoder>)>,
}

/// Says whether a value of a type that may be null is null.
#[inline]
fn is_null(null_branch: Option<u64>, input: &mut Input<'_>) -> Result<bool, NotParsedReason> {
    match null_branch {
        Some(null_branch) => Ok(branch(input)? == null_branch),
        None => Ok(false),
    }
}

/// The position at which reading a message has stopped.
struct ReadPosition {
    row: usize,
    column: Option<usize>,
}

impl<'p> AvroRows<'p> {
    pub fn new(plan: &'p ReadPlan) -> Self {
        let columns = GrowingColumns::new(plan.columns());
        AvroRows { plan, columns, rows: 0, left_out: Present::default(), latest: None }
    }

    /// Reads a file, and returns how many rows it had.
    ///
    /// # Errors
    /// Fails, with the outer error, where the table can't have rows of the file's schema. The inner error
    /// says that the file can't be read, or that a value does not fit; then nothing of the file stays.
    pub fn read_file(
        &mut self,
        payload: &[u8],
        is_required: &dyn Fn(usize) -> bool,
    ) -> Result<Result<usize, SeriesError>, String> {
        let mut budget = Budget::of_message();
        let Some(mut container) = Container::open(payload) else {
            return Ok(Err(SeriesError { reason: BROKEN, row: 0, column: None, at: None, is_refused: true }));
        };
        let decoder = match &self.latest {
            Some((schema, decoder)) if schema == container.schema => decoder.clone(),
            _ => {
                let decoder = Arc::new(AvroDecoder::new(container.schema, self.plan, is_required)?);
                self.latest = Some((container.schema.to_vec(), decoder.clone()));
                decoder
            }
        };
        Ok(self.read_whole(|rows, position| {
            while let Some(block) = container.next_block(&mut budget)? {
                let mut input = Input::new(&block.bytes);
                for _ in 0..block.rows {
                    rows.read_row(&decoder, &mut input, &mut budget, position)?;
                    // Rows of no bytes could be any number.
                    budget.take(1)?;
                }
                if !input.is_empty() {
                    return Err(BROKEN);
                }
            }
            Ok(())
        }))
    }

    /// Reads one row, which is all of `payload`.
    ///
    /// # Errors
    /// Fails where the row can't be read, or a value does not fit its column; then nothing of it stays.
    pub fn read_datum(&mut self, payload: &[u8], decoder: &AvroDecoder) -> Result<usize, SeriesError> {
        self.read_whole(|rows, position| {
            let mut input = Input::new(payload);
            rows.read_row(decoder, &mut input, &mut Budget::of_message(), position)?;
            match input.is_empty() {
                true => Ok(()),
                false => Err(BROKEN),
            }
        })
    }

    fn read_whole(
        &mut self,
        read: impl FnOnce(&mut Self, &mut ReadPosition) -> Result<(), NotParsedReason>,
    ) -> Result<usize, SeriesError> {
        let before = self.rows;
        self.columns.pass(before);
        let mut position = ReadPosition { row: 0, column: None };
        match read(self, &mut position) {
            Ok(()) => Ok(self.rows - before),
            Err(reason) => {
                self.columns.truncate(before);
                self.rows = before;
                if before == 0 {
                    self.left_out = Present::default();
                }
                // What can't be read here is not left to ClickHouse: it would read other values.
                Err(SeriesError {
                    reason,
                    row: position.row as u64,
                    column: position.column,
                    at: None,
                    is_refused: true,
                })
            }
        }
    }

    fn read_row(
        &mut self,
        decoder: &AvroDecoder,
        input: &mut Input<'_>,
        budget: &mut Budget,
        position: &mut ReadPosition,
    ) -> Result<(), NotParsedReason> {
        for &column in &decoder.left_out {
            self.leave_out(column)?;
        }
        for &column in &decoder.zeros {
            budget.take(16)?;
            self.columns.push_zero(column, 0);
        }
        for step in &decoder.steps {
            self.read_step(step, input, budget, position)?;
        }
        if !self.nested_lengths_agree() {
            return Err(NotParsedReason::Value);
        }
        self.rows += 1;
        position.row += 1;
        Ok(())
    }

    fn read_step(
        &mut self,
        step: &Step,
        input: &mut Input<'_>,
        budget: &mut Budget,
        position: &mut ReadPosition,
    ) -> Result<(), NotParsedReason> {
        match step {
            Step::Skip(data_type) => skip(data_type, input),
            Step::Column { column, depth, value } => {
                let outcome = self.read_column(*column, *depth, value, input, budget);
                if outcome.is_err() {
                    position.column = Some(*column);
                }
                outcome
            }
            Step::Inside { null_branch, depth, steps, columns } => {
                if is_null(*null_branch, input)? {
                    return columns.iter().try_for_each(|column| self.absent(*column, *depth, budget));
                }
                steps.iter().try_for_each(|step| self.read_step(step, input, budget, position))
            }
            Step::Each { null_branch, depth, steps, columns, zeros } => {
                let mut all = columns.iter().chain(zeros).copied();
                if is_null(*null_branch, input)? {
                    return all.try_for_each(|column| self.absent(column, *depth, budget));
                }
                for &column in columns.iter().filter(|column| *depth == 0 && has_default(self.plan, **column)) {
                    self.give(column)?;
                }
                let mut count = 0;
                blocks(input, |input| {
                    count += 1;
                    steps.iter().try_for_each(|step| self.read_step(step, input, budget, position))?;
                    budget.take(16 * zeros.len())?;
                    zeros.iter().for_each(|column| self.columns.push_zero(*column, depth + 1));
                    Ok(())
                })?;
                budget.take(8 * (columns.len() + zeros.len()))?;
                all.for_each(|column| self.columns.end_array(column, *depth, count));
                Ok(())
            }
            Step::Only(step) => match branch(input)? {
                0 => self.read_step(step, input, budget, position),
                _ => Err(BROKEN),
            },
        }
    }

    fn read_column(
        &mut self,
        column: usize,
        depth: usize,
        value: &Value,
        input: &mut Input<'_>,
        budget: &mut Budget,
    ) -> Result<(), NotParsedReason> {
        if depth == 0 && has_default(self.plan, column) {
            // NULL asks for the DEFAULT expression, where it is no value.
            match value {
                Value::NullAsZero { null_branch, inner, .. } => {
                    if branch(input)? == *null_branch {
                        return self.leave_out(column);
                    }
                    self.give(column)?;
                    return inner.read(input, &mut self.columns.data[column], budget);
                }
                Value::Nothing(wanted) if !matches!(wanted, DataType::Nullable(_)) => return self.leave_out(column),
                _ => self.give(column)?,
            }
        }
        value.read(input, self.columns.at(column, depth), budget)
    }

    fn absent(&mut self, column: usize, depth: usize, budget: &mut Budget) -> Result<(), NotParsedReason> {
        if depth == 0 && has_default(self.plan, column) {
            return self.leave_out(column);
        }
        budget.take(16)?;
        self.columns.push_zero(column, depth);
        Ok(())
    }

    fn give(&self, column: usize) -> Result<(), NotParsedReason> {
        match self.left_out.contains(column) {
            true => Err(NotParsedReason::MixedDefaults),
            false => Ok(()),
        }
    }

    fn leave_out(&mut self, column: usize) -> Result<(), NotParsedReason> {
        if !self.left_out.contains(column) {
            if self.rows > 0 {
                return Err(NotParsedReason::MixedDefaults);
            }
            self.left_out.insert(column);
        }
        Ok(())
    }

    /// Says whether lists of one Nested have the same length in the present row.
    fn nested_lengths_agree(&self) -> bool {
        let length = |column: &usize| match &self.columns.data[*column] {
            ColumnData::Array { offsets, .. } => {
                let before = self.rows.checked_sub(1).map_or(0, |row| offsets[row]);
                offsets[self.rows] - before
            }
            _ => 0,
        };
        self.plan.nested_groups().iter().all(|group| {
            let mut lengths = group.iter().filter(|column| !self.left_out.contains(**column)).map(length);
            let first = lengths.next();
            lengths.all(|other| Some(other) == first)
        })
    }

    pub fn bytes(&self) -> usize {
        self.columns.bytes()
    }

    /// Returns the rows that were read.
    pub fn take(&mut self) -> Parsed {
        let rows = std::mem::take(&mut self.rows);
        let left_out = std::mem::take(&mut self.left_out);
        let columns = self.columns.take().into_iter().enumerate().filter(|(index, _)| !left_out.contains(*index));
        let put = || {
            let mut builder = BlockBuilder::new(self.plan, 0).ok()?;
            columns.into_iter().try_for_each(|(index, column)| builder.put(index, column, rows)).ok()?;
            builder.end_rows(rows).ok()?;
            builder.finish().ok()
        };
        put().expect("every column has a value of its type for every row")
    }
}
