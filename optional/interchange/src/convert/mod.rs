//! Converts a payload's columns to the table's. Only this module knows what ClickHouse makes of each pair of types.
//!
//! ClickHouse reads a column as the type that the file suggests and casts it to the table's, so it accepts
//! nearly every pair, with numbers that wrap and dates that are clamped. Here only pairs of one kind are
//! accepted, and only values that both types have; everything else is left to ClickHouse.

mod bytes;
mod nested;
mod number;
mod time;

use windrow_columns::{BlockBuilder, ColumnData, DataType, DefaultKind, NotParsedReason, ReadPlan};

use crate::column::{Column, Values};
use number::{Decimals, Ints};

pub(crate) struct Converter<'p> {
    plan: &'p ReadPlan,
}

type Converted = Result<ColumnData, NotParsedReason>;

impl<'p> Converter<'p> {
    pub(crate) fn new(plan: &'p ReadPlan) -> Self {
        Converter { plan }
    }

    /// Adds the next rows of one of the table's columns.
    pub(crate) fn put(
        &self,
        builder: &mut BlockBuilder<'_>,
        index: usize,
        column: &Column<'_>,
    ) -> Result<(), NotParsedReason> {
        let spec = &self.plan.columns()[index];
        let takes_null = is_nullable(&spec.data_type);
        if column.has_nulls() && !takes_null {
            if !self.plan.settings().null_as_default() {
                return Err(NotParsedReason::Null);
            }
            if spec.default_kind == DefaultKind::Default {
                // What can't be converted is refused by ClickHouse even if there is nothing of it.
                self.column(column, &spec.data_type, Nulls::Zero)?;
                return match column.nulls.iter().flatten().all(|null| *null == 1) {
                    true => builder.put_nulls(index, column.rows),
                    false => Err(NotParsedReason::MixedDefaults),
                };
            }
        }
        let nulls = if takes_null { Nulls::Kept } else { Nulls::Zero };
        builder.put(index, self.column(column, &spec.data_type, nulls)?, column.rows)
    }

    fn column(&self, column: &Column<'_>, wanted: &DataType, nulls: Nulls) -> Converted {
        match wanted {
            DataType::LowCardinality(inner) => self.column(column, inner, nulls),
            DataType::Nullable(inner) => {
                let nulls = column.nulls.clone().unwrap_or_else(|| vec![0; column.rows]);
                let inner = self.values(column, inner, Nulls::Kept)?;
                Ok(ColumnData::Nullable { nulls, inner: Box::new(inner) })
            }
            _ if column.has_nulls() && (nulls == Nulls::Refused || is_enum(wanted)) => Err(NotParsedReason::Null),
            _ => self.values(column, wanted, nulls),
        }
    }

    /// Converts the values alone; NULL rows become zeros.
    fn values(&self, column: &Column<'_>, wanted: &DataType, nulls: Nulls) -> Converted {
        let settings = self.plan.settings();
        let (mask, exact) = (column.nulls.as_deref(), settings.is_exact());
        let converted = match &column.values {
            Values::Bool(data) => number::from_bools(data, mask, wanted),
            Values::Int { width, signed, data } => {
                number::from_ints(&Ints { width: *width, signed: *signed, data }, mask, wanted, exact)
            }
            Values::Float { width, data } => number::from_floats(*width, data, mask, wanted, exact),
            Values::Decimal { scale, width, data } => {
                number::from_decimals(&Decimals { scale: *scale, width: *width, data }, mask, wanted)
            }
            Values::Date(days) => time::from_dates(days, mask, wanted, settings.is_for_sql()),
            Values::Timestamp { power, data } => {
                time::from_timestamps(*power, data, mask, wanted, exact, settings.is_for_sql())
            }
            Values::TimeOfDay { power, data } => time::from_times_of_day(*power, data, mask, wanted),
            Values::Strings(strings) => bytes::from_strings(strings, mask, wanted, nulls),
            Values::Uuid(data) => match wanted {
                DataType::Uuid => bytes::from_fixed(16, data, mask, wanted),
                _ => None,
            },
            Values::FixedBytes { width, data } => bytes::from_fixed(*width, data, mask, wanted),
            Values::List { ends, inner } => return self.list(ends, inner, mask, wanted),
            Values::Map { ends, key, value } => return self.map(ends, key, value, mask, wanted),
            Values::Struct(fields) => return self.structure(fields, mask, wanted),
        };
        converted.ok_or(NotParsedReason::Value)
    }
}

/// The result for a row that is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    /// NULL; the value behind it means nothing.
    Kept,
    /// The type's zero, where ClickHouse surely stores that.
    Zero,
    Refused,
}

fn is_nullable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Nullable(_) => true,
        DataType::LowCardinality(inner) => is_nullable(inner),
        _ => false,
    }
}

/// Says whether the type is an Enum, whose zero may be none of its values.
fn is_enum(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Enum8(_) | DataType::Enum16(_))
}
