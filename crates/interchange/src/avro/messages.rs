//! Message after message of a topic into the same columns: object container files, which bring their schema along, and single rows in
//! the registry's framing (a zero byte, the schema's id, the row).
//!
//! A message is read whole or leaves nothing behind. Columns whose field a schema hasn't are left out by its rows.

use std::sync::Arc;

use windrow_columns::{BlockBuilder, ColumnData, DefaultKind, NotParsedReason, Parsed, Present, ReadPlan, SeriesError};

use super::container::Container;
use super::decode::{branch, skip, Value};
use super::schema::{self, Field, Kind, Type};
use super::BROKEN;
use crate::budget::Budget;
use crate::growing::GrowingColumns;
use crate::input::Input;

/// How rows of one schema become rows of the table.
pub struct AvroDecoder {
    steps: Vec<Step>,
    /// Columns of no field, with a DEFAULT expression and without.
    left_out: Vec<usize>,
    zeros: Vec<usize>,
}

enum Step {
    Skip(Arc<Type>),
    Column {
        column: usize,
        value: Value,
    },
    /// A record whose fields are columns, and which columns these are, for where it is null.
    Inside {
        null_branch: Option<u64>,
        steps: Vec<Step>,
        columns: Vec<usize>,
    },
}

impl AvroDecoder {
    /// The plan's columns are named by their fields' paths. `is_required`: whether a column's field has to be in the schema.
    pub fn new(schema: &[u8], plan: &ReadPlan, is_required: &dyn Fn(usize) -> bool) -> Result<Self, String> {
        let fields = schema::record_of_messages(schema)?;
        let mut found = vec![false; plan.columns().len()];
        let steps = steps(&fields, "", plan, &mut found)?;
        let missing: Vec<usize> = (0..found.len()).filter(|column| !found[*column]).collect();
        if let Some(column) = missing.iter().find(|column| is_required(**column)) {
            return Err(format!("Field {} not found in Avro schema", plan.columns()[*column].name));
        }
        if missing.len() == found.len() {
            return Err("no column of the table takes a field of the Avro schema".to_owned());
        }
        let has_default = |column: &usize| plan.columns()[*column].default_kind == DefaultKind::Default;
        let (left_out, zeros) = missing.into_iter().partition(has_default);
        Ok(AvroDecoder { steps, left_out, zeros })
    }
}

fn steps(fields: &[Field], prefix: &str, plan: &ReadPlan, found: &mut [bool]) -> Result<Vec<Step>, String> {
    fields.iter().map(|field| step(field, prefix, plan, found)).collect()
}

fn step(field: &Field, prefix: &str, plan: &ReadPlan, found: &mut [bool]) -> Result<Step, String> {
    let path = format!("{prefix}{}", field.name);
    if let Some(column) = plan.position(path.as_bytes()) {
        let wanted = &plan.columns()[column].data_type;
        let value = Value::new(&field.data_type, wanted, plan.settings().null_as_default()).ok_or_else(|| {
            format!("field {path} ({}) can't be read into a column of type {wanted}", field.data_type.name())
        })?;
        found[column] = true;
        return Ok(Step::Column { column, value });
    }
    let (null_branch, inner) = match &field.data_type.kind {
        Kind::Nullable { null_branch, inner } => (Some(*null_branch), &**inner),
        _ => (None, &*field.data_type),
    };
    let prefix = format!("{path}.");
    let within = |column: &usize| plan.columns()[*column].name.starts_with(&prefix);
    let columns: Vec<usize> = (0..plan.columns().len()).filter(within).collect();
    match &inner.kind {
        Kind::Record(fields) if !columns.is_empty() => {
            let steps = steps(fields, &prefix, plan, found)?;
            let columns = columns.into_iter().filter(|column| found[*column]).collect();
            Ok(Step::Inside { null_branch, steps, columns })
        }
        _ => Ok(Step::Skip(field.data_type.clone())),
    }
}

/// The rows so far.
pub struct AvroRows<'p> {
    plan: &'p ReadPlan,
    columns: GrowingColumns,
    rows: usize,
    /// Columns with a DEFAULT expression that all rows so far left out.
    left_out: Present,
    /// The schema of the latest file, as it stood there: the next one mostly has the same.
    latest: Option<(Vec<u8>, Arc<AvroDecoder>)>,
}

/// Where reading a message has stopped.
struct ReadPosition {
    row: usize,
    column: Option<usize>,
}

impl<'p> AvroRows<'p> {
    pub fn new(plan: &'p ReadPlan) -> Self {
        let columns = GrowingColumns::new(plan.columns());
        AvroRows { plan, columns, rows: 0, left_out: Present::default(), latest: None }
    }

    /// Reads a file. The outer error is of its schema, which has no place in the table.
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
            self.columns.push_zero(column);
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
            Step::Column { column, value } => {
                let outcome = self.read_column(*column, value, input, budget);
                if outcome.is_err() {
                    position.column = Some(*column);
                }
                outcome
            }
            Step::Inside { null_branch, steps, columns } => {
                if let Some(null_branch) = null_branch {
                    if branch(input)? == *null_branch {
                        return columns.iter().try_for_each(|column| self.absent(*column, budget));
                    }
                }
                steps.iter().try_for_each(|step| self.read_step(step, input, budget, position))
            }
        }
    }

    fn read_column(
        &mut self,
        column: usize,
        value: &Value,
        input: &mut Input<'_>,
        budget: &mut Budget,
    ) -> Result<(), NotParsedReason> {
        if self.has_default(column) {
            // NULL asks for the DEFAULT expression, where it is no value.
            if let Value::NullAsZero { null_branch, inner, .. } = value {
                if branch(input)? == *null_branch {
                    return self.leave_out(column);
                }
                self.give(column)?;
                return inner.read(input, &mut self.columns.data[column], budget);
            }
            self.give(column)?;
        }
        value.read(input, &mut self.columns.data[column], budget)
    }

    fn absent(&mut self, column: usize, budget: &mut Budget) -> Result<(), NotParsedReason> {
        if self.has_default(column) {
            return self.leave_out(column);
        }
        budget.take(16)?;
        self.columns.push_zero(column);
        Ok(())
    }

    fn has_default(&self, column: usize) -> bool {
        self.plan.columns()[column].default_kind == DefaultKind::Default
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

    /// In the row at hand.
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

    /// Hands out the rows that were read.
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
