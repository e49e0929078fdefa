//! The field that a type becomes, as ClickHouse 26.7 gives it in its own Arrow formats.

use windrow_columns::{DataType, IntervalUnit, TupleType};

use super::{ArrowError, ArrowOptions};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrowField {
    pub(super) name: String,
    /// The type in the C data interface's notation.
    pub(super) format: String,
    pub(super) nullable: bool,
    pub(super) metadata: Vec<(&'static str, &'static str)>,
    pub(super) children: Vec<ArrowField>,
    pub(super) dictionary: Option<Box<ArrowField>>,
}

impl ArrowField {
    fn new(name: &str, format: impl Into<String>) -> ArrowField {
        let (name, format) = (name.to_string(), format.into());
        ArrowField { name, format, nullable: false, metadata: Vec::new(), children: Vec::new(), dictionary: None }
    }

    fn with(mut self, children: Vec<ArrowField>) -> ArrowField {
        self.children = children;
        self
    }

    pub(super) fn of_struct(fields: Vec<ArrowField>) -> ArrowField {
        ArrowField::new("", "+s").with(fields)
    }

    pub(super) fn of(name: &str, of: &DataType, options: &ArrowOptions) -> Result<ArrowField, ArrowError> {
        let field = |name: &str, of: &DataType| ArrowField::of(name, of, options);
        Ok(match of {
            DataType::Nullable(of) => ArrowField { nullable: true, ..field(name, of)? },
            DataType::LowCardinality(of) => low_cardinality(name, of, options)?,
            DataType::Array(of) => ArrowField::new(name, "+l").with(vec![field("item", of)?]),
            DataType::Map(key, value) => {
                let entries = ArrowField::new("entries", "+s").with(vec![field("key", key)?, field("value", value)?]);
                ArrowField::new(name, "+m").with(vec![entries])
            }
            DataType::Tuple(TupleType { names, elements }) => {
                let named = |index: usize| match names {
                    Some(names) => names[index].clone(),
                    None => (index + 1).to_string(),
                };
                let elements = elements.iter().enumerate().map(|(index, element)| field(&named(index), element));
                ArrowField::new(name, "+s").with(elements.collect::<Result<_, _>>()?)
            }
            DataType::Variant(alternatives) => variant(name, alternatives, options)?,
            DataType::Dynamic | DataType::Json { .. } => ArrowField {
                metadata: vec![("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")],
                ..ArrowField::new(name, "u")
            },
            DataType::QBit { .. } => return Err(refused_qbit(of)),
            DataType::Nothing => ArrowField::new(name, "n"),
            DataType::Custom(custom) => field(name, &custom.inner)?,
            scalar => scalar_field(name, scalar, options),
        })
    }
}

fn scalar_field(name: &str, scalar: &DataType, options: &ArrowOptions) -> ArrowField {
    let field = ArrowField::new(name, format_of(scalar, options));
    match scalar {
        DataType::Uuid => ArrowField {
            metadata: vec![
                ("PARQUET:logical_type", "UUID"),
                ("ARROW:extension:name", "arrow.uuid"),
                ("ARROW:extension:metadata", ""),
            ],
            ..field
        },
        _ => field,
    }
}

fn format_of(scalar: &DataType, options: &ArrowOptions) -> String {
    use DataType::*;
    let plain = match scalar {
        UInt8 => "C",
        UInt16 => "S",
        UInt32 | DateTime { .. } | Ipv4 => "I",
        UInt64 => "L",
        Int8 | Enum8(_) => "c",
        Int16 | Enum16(_) => "s",
        Int32 => "i",
        Int64 => "l",
        Float32 => "f",
        Float64 => "g",
        Bool => "b",
        String if options.string_as_string => "u",
        String | BFloat16 => "z",
        Date | Date32 => "tdD",
        Time => "tts",
        Time64 { precision } => ["tts", "ttm", "ttu", "ttn"][unit_of(*precision)],
        Interval(IntervalUnit::Nanosecond) => "tDn",
        Interval(IntervalUnit::Microsecond) => "tDu",
        Interval(IntervalUnit::Millisecond) => "tDm",
        Interval(IntervalUnit::Second) => "tDs",
        Interval(_) => "l",
        UInt128 | Int128 | Uuid | Ipv6 => "w:16",
        UInt256 | Int256 => "w:32",
        FixedString(width) => return format!("w:{width}"),
        Decimal { precision: precision @ ..=38, scale } => return format!("d:{precision},{scale}"),
        Decimal { precision, scale } => return format!("d:{precision},{scale},256"),
        DateTime64 { precision, timezone } => {
            let timezone = timezone.as_deref().unwrap_or(&options.timezone);
            return format!("ts{}:{timezone}", ["s", "m", "u", "n"][unit_of(*precision)]);
        }
        // Types with types inside are never scalars.
        Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) | Custom(_) => "n",
        Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => "n",
    };
    plain.to_string()
}

/// Returns the number of Arrow's unit. Arrow counts in seconds, or in thousandth parts of the unit before:
/// the next finer unit is taken.
pub(super) fn unit_of(precision: u8) -> usize {
    usize::from(precision.div_ceil(3)).min(3)
}

fn low_cardinality(name: &str, of: &DataType, options: &ArrowOptions) -> Result<ArrowField, ArrowError> {
    let field = ArrowField::of(name, of, options)?;
    if !options.low_cardinality_as_dictionary {
        return Ok(field);
    }
    let nullable = field.nullable;
    let dictionary = ArrowField { name: String::new(), nullable: false, metadata: Vec::new(), ..field };
    Ok(ArrowField { nullable, dictionary: Some(Box::new(dictionary)), ..ArrowField::new(name, "i") })
}

/// Returns a union, with NULL as the last of its members.
fn variant(name: &str, alternatives: &[DataType], options: &ArrowOptions) -> Result<ArrowField, ArrowError> {
    // ClickHouse leaves dictionaries folded here.
    let options = ArrowOptions { low_cardinality_as_dictionary: true, ..options.clone() };
    let members = alternatives.iter().map(|alternative| ArrowField::of(&family_of(alternative), alternative, &options));
    let mut members: Vec<_> = members.collect::<Result<_, _>>()?;
    members.push(ArrowField::new("NULL", "n"));
    let ids: Vec<_> = (0..members.len()).map(|id| id.to_string()).collect();
    if ids.len() > MAX_UNION_MEMBERS {
        return Err(ArrowError::NotSupported(format!("Arrow has no union of {} types", ids.len())));
    }
    Ok(ArrowField::new(name, format!("+ud:{}", ids.join(","))).with(members))
}

/// The largest number of members: their numbers are signed bytes.
const MAX_UNION_MEMBERS: usize = 127;

/// Returns the type's name without the part in brackets.
fn family_of(of: &DataType) -> String {
    match of.plain() {
        DataType::Bool => "UInt8".to_string(),
        DataType::Interval(_) => "Interval".to_string(),
        DataType::Json { .. } => "Object".to_string(),
        plain => plain.family().to_string(),
    }
}

fn refused_qbit(of: &DataType) -> ArrowError {
    let DataType::QBit { dimension, array } = of else { return ArrowError::NotSupported(of.to_string()) };
    let bits = match array.as_ref() {
        DataType::Array(element) => element.fixed_width().unwrap_or(0) * 8,
        _ => 0,
    };
    let planes = vec![format!("FixedString({})", dimension.div_ceil(8)); bits].join(", ");
    ArrowError::NotSupported(format!("Method getDataAt is not supported for Tuple({planes})"))
}
