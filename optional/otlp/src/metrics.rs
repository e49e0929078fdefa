//! Points of metrics as rows.

use crate::cells::{Column, Value};
use crate::check::points_of;
use crate::kind::Kind;
use crate::rows::{push_keys, Fields};
use crate::source::Field;
use crate::value::Attribute;
use crate::wire::{checked, fixed_numbers, varints, Payload};

/// The fields that the points of a metric share.
#[derive(Default)]
pub(crate) struct Metric<'a> {
    name: &'a [u8],
    description: &'a [u8],
    unit: &'a [u8],
    /// The kind of the points, and the message that has them.
    data: Option<(Kind, &'a [u8])>,
    temporality: u64,
    is_monotonic: bool,
}

/// A point of any kind.
#[derive(Default)]
pub(crate) struct Point<'a> {
    attributes: Vec<Attribute<'a>>,
    start_time: u64,
    time: u64,
    flags: u64,
    value: f64,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    bucket_counts: Vec<u64>,
    explicit_bounds: Vec<f64>,
    scale: i32,
    zero_count: u64,
    positive: Buckets,
    negative: Buckets,
    quantiles: Vec<Quantile>,
    exemplars: Vec<Exemplar<'a>>,
}

#[derive(Default)]
struct Buckets {
    offset: i32,
    counts: Vec<u64>,
}

#[derive(Default)]
struct Quantile {
    quantile: f64,
    value: f64,
}

#[derive(Default)]
struct Exemplar<'a> {
    attributes: Vec<Attribute<'a>>,
    time: u64,
    value: f64,
    span_id: &'a [u8],
    trace_id: &'a [u8],
}

impl<'a> Metric<'a> {
    pub(crate) fn read(message: &'a [u8]) -> Self {
        let mut metric = Metric::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(name)) => metric.name = name,
                (2, Payload::Bytes(description)) => metric.description = description,
                (3, Payload::Bytes(unit)) => metric.unit = unit,
                (number, Payload::Bytes(data)) => {
                    metric.data = points_of(number).map(|kind| (kind, data)).or(metric.data);
                }
                _ => {}
            }
        }
        let data = metric.data.map_or(&[][..], |(_, data)| data);
        for field in checked(data) {
            match (field.number, field.payload) {
                (2, Payload::Varint(temporality)) => metric.temporality = temporality,
                (3, Payload::Varint(monotonic)) => metric.is_monotonic = monotonic != 0,
                _ => {}
            }
        }
        metric
    }

    /// Returns the message that has the points, if they are of this kind.
    pub(crate) fn points_of(&self, kind: Kind) -> Option<&'a [u8]> {
        self.data.filter(|(of, _)| *of == kind).map(|(_, points)| points)
    }
}

impl Fields for Metric<'_> {
    fn write(&self, field: Field, column: &mut Column<'_>) {
        column.push(match field {
            Field::MetricName => Value::Text(self.name),
            Field::MetricDescription => Value::Text(self.description),
            Field::MetricUnit => Value::Text(self.unit),
            Field::AggregationTemporality => Value::Integer(self.temporality),
            Field::IsMonotonic => Value::Integer(u64::from(self.is_monotonic)),
            other => unreachable!("{other:?} is no field of a metric"),
        });
    }

    fn attributes(&self) -> &[Attribute<'_>] {
        &[]
    }
}

impl<'a> Point<'a> {
    pub(crate) fn read(message: &'a [u8], kind: Kind) -> Self {
        let mut point = Point::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                // Of every kind.
                (2, Payload::Fixed64(time)) => point.start_time = time,
                (3, Payload::Fixed64(time)) => point.time = time,
                (number, payload) => match kind {
                    Kind::Histogram => point.read_of_histogram(number, payload),
                    Kind::ExponentialHistogram => point.read_of_exponential(number, payload),
                    Kind::Summary => point.read_of_summary(number, payload),
                    _ => point.read_of_number(number, payload),
                },
            }
        }
        Attribute::sort(&mut point.attributes);
        point
    }

    fn read_of_number(&mut self, number: u32, payload: Payload<'a>) {
        match (number, payload) {
            (4, Payload::Fixed64(bits)) => self.value = f64::from_bits(bits),
            (5, Payload::Bytes(exemplar)) => self.exemplars.push(Exemplar::read(exemplar)),
            // Beyond 2^53 a Float64 has not all of them.
            (6, Payload::Fixed64(integer)) => self.value = integer.cast_signed() as f64,
            (7, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
            (8, Payload::Varint(flags)) => self.flags = flags,
            _ => {}
        }
    }

    fn read_of_histogram(&mut self, number: u32, payload: Payload<'a>) {
        match (number, payload) {
            (4, Payload::Fixed64(count)) => self.count = count,
            (5, Payload::Fixed64(bits)) => self.sum = f64::from_bits(bits),
            (6, counts) => self.bucket_counts.extend(fixed_numbers(counts)),
            (7, bounds) => self.explicit_bounds.extend(fixed_numbers(bounds).map(f64::from_bits)),
            (8, Payload::Bytes(exemplar)) => self.exemplars.push(Exemplar::read(exemplar)),
            (9, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
            (10, Payload::Varint(flags)) => self.flags = flags,
            (11, Payload::Fixed64(bits)) => self.min = f64::from_bits(bits),
            (12, Payload::Fixed64(bits)) => self.max = f64::from_bits(bits),
            _ => {}
        }
    }

    fn read_of_exponential(&mut self, number: u32, payload: Payload<'a>) {
        match (number, payload) {
            (1, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
            (4, Payload::Fixed64(count)) => self.count = count,
            (5, Payload::Fixed64(bits)) => self.sum = f64::from_bits(bits),
            (6, Payload::Varint(scale)) => self.scale = zigzag(scale),
            (7, Payload::Fixed64(count)) => self.zero_count = count,
            (8, Payload::Bytes(buckets)) => self.positive.read(buckets),
            (9, Payload::Bytes(buckets)) => self.negative.read(buckets),
            (10, Payload::Varint(flags)) => self.flags = flags,
            (11, Payload::Bytes(exemplar)) => self.exemplars.push(Exemplar::read(exemplar)),
            (12, Payload::Fixed64(bits)) => self.min = f64::from_bits(bits),
            (13, Payload::Fixed64(bits)) => self.max = f64::from_bits(bits),
            _ => {}
        }
    }

    fn read_of_summary(&mut self, number: u32, payload: Payload<'a>) {
        match (number, payload) {
            (4, Payload::Fixed64(count)) => self.count = count,
            (5, Payload::Fixed64(bits)) => self.sum = f64::from_bits(bits),
            (6, Payload::Bytes(quantile)) => self.quantiles.push(Quantile::read(quantile)),
            (7, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
            (8, Payload::Varint(flags)) => self.flags = flags,
            _ => {}
        }
    }
}

impl Fields for Point<'_> {
    fn write(&self, field: Field, column: &mut Column<'_>) {
        let (quantiles, exemplars) = (self.quantiles.iter(), self.exemplars.iter());
        let integers = |column: &mut Column<'_>, numbers: &[u64]| {
            column.push_list(numbers.iter().map(|number| Value::Integer(*number)));
        };
        let value = match field {
            Field::Timestamp => Value::Time(self.time),
            Field::StartTime => Value::Time(self.start_time),
            Field::Flags => Value::Integer(self.flags),
            Field::Value => Value::Float(self.value),
            Field::Count => Value::Integer(self.count),
            Field::Sum => Value::Float(self.sum),
            Field::Min => Value::Float(self.min),
            Field::Max => Value::Float(self.max),
            Field::Scale => signed(self.scale),
            Field::ZeroCount => Value::Integer(self.zero_count),
            Field::PositiveOffset => signed(self.positive.offset),
            Field::NegativeOffset => signed(self.negative.offset),
            Field::Attributes => Value::Attributes(&self.attributes),
            Field::AttributesKeys => return push_keys(column, &self.attributes),
            Field::BucketCounts => return integers(column, &self.bucket_counts),
            Field::PositiveBucketCounts => return integers(column, &self.positive.counts),
            Field::NegativeBucketCounts => return integers(column, &self.negative.counts),
            Field::ExplicitBounds => {
                return column.push_list(self.explicit_bounds.iter().map(|bound| Value::Float(*bound)));
            }
            Field::Quantiles => return column.push_list(quantiles.map(|of| Value::Float(of.quantile))),
            Field::QuantileValues => return column.push_list(quantiles.map(|of| Value::Float(of.value))),
            Field::ExemplarAttributes => {
                return column.push_list(exemplars.map(|exemplar| Value::Attributes(&exemplar.attributes)));
            }
            Field::ExemplarTimes => return column.push_list(exemplars.map(|exemplar| Value::Time(exemplar.time))),
            Field::ExemplarValues => return column.push_list(exemplars.map(|exemplar| Value::Float(exemplar.value))),
            Field::ExemplarSpanIds => return column.push_list(exemplars.map(|exemplar| whole_id(exemplar.span_id, 8))),
            Field::ExemplarTraceIds => {
                return column.push_list(exemplars.map(|exemplar| whole_id(exemplar.trace_id, 16)));
            }
            other => unreachable!("{other:?} is no field of a point"),
        };
        column.push(value);
    }

    fn attributes(&self) -> &[Attribute<'_>] {
        &self.attributes
    }

    fn all_attributes<'s>(&'s self) -> Box<dyn Iterator<Item = &'s [Attribute<'s>]> + 's> {
        let of_exemplars = self.exemplars.iter().map(|exemplar| &exemplar.attributes[..]);
        Box::new(std::iter::once(&self.attributes[..]).chain(of_exemplars))
    }
}

impl Buckets {
    fn read(&mut self, message: &[u8]) {
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Varint(offset)) => self.offset = zigzag(offset),
                (2, counts) => self.counts.extend(varints(counts)),
                _ => {}
            }
        }
    }
}

impl Quantile {
    fn read(message: &[u8]) -> Self {
        let mut quantile = Quantile::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Fixed64(bits)) => quantile.quantile = f64::from_bits(bits),
                (2, Payload::Fixed64(bits)) => quantile.value = f64::from_bits(bits),
                _ => {}
            }
        }
        quantile
    }
}

impl<'a> Exemplar<'a> {
    fn read(message: &'a [u8]) -> Self {
        let mut exemplar = Exemplar::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (2, Payload::Fixed64(time)) => exemplar.time = time,
                (3, Payload::Fixed64(bits)) => exemplar.value = f64::from_bits(bits),
                (4, Payload::Bytes(id)) => exemplar.span_id = id,
                (5, Payload::Bytes(id)) => exemplar.trace_id = id,
                (6, Payload::Fixed64(integer)) => exemplar.value = integer.cast_signed() as f64,
                (7, Payload::Bytes(attribute)) => exemplar.attributes.push(Attribute::read(attribute)),
                _ => {}
            }
        }
        Attribute::sort(&mut exemplar.attributes);
        exemplar
    }
}

/// Returns the id of an exemplar in full: the exporter writes zeros where there is none.
fn whole_id(id: &[u8], bytes: usize) -> Value<'_> {
    match id.is_empty() {
        true => Value::Hex(&[0; 16][..bytes]),
        false => Value::Hex(id),
    }
}

fn signed(number: i32) -> Value<'static> {
    Value::Integer(i64::from(number).cast_unsigned())
}

/// Reads a signed number as Protobuf's sint32 has it.
fn zigzag(number: u64) -> i32 {
    let number = number as u32;
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
