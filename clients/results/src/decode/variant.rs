//! `Variant` and `Dynamic` columns: the alternative of each row, then the alternatives' columns, each with
//! its own rows only.

use super::error::Problem;
use super::input::{done_or_wait, token_or_wait, Gathered, Input, Progress};
use super::reader::Reader;
use crate::column::Column;
use windrow_columns::wire::{NULL_DISCRIMINATOR, PLAIN_DISCRIMINATORS};
use windrow_columns::DataType;

const NULL_IN_VARIANT: u16 = NULL_DISCRIMINATOR as u16;
/// The version that the setting `output_format_native_use_flattened_dynamic_and_json_serialization` asks for.
pub(super) const FLATTENED: u64 = 3;
/// The version that servers send which don't know the setting, or to users who may not change it: a Variant,
/// with one alternative more for values of all types that have none of their own.
const STRUCTURED: u64 = 1;
const SHARED: &str = "SharedVariant";
pub(super) const NOT_FLATTENED: &str =
    "these values can only be read as the setting output_format_native_use_flattened_dynamic_and_json_serialization=1 \
gives them: set it, or cast the column in the query";
const MAX_TYPES: u64 = 65_534;
const MAX_TYPE_NAME_BYTES: usize = 16 << 20;

/// The columns of the alternatives, read one after the other.
#[derive(Default)]
struct Alternatives {
    types: Vec<DataType>,
    readers: Vec<Reader>,
    /// The first alternative that isn't whole.
    at: usize,
    discriminators: Vec<u16>,
    positions: Vec<u32>,
}

impl Alternatives {
    fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        while let Some(reader) = self.readers.get_mut(self.at) {
            done_or_wait!(reader.prefix(input));
            self.at += 1;
        }
        self.at = 0;
        Ok(Progress::Done)
    }

    fn begin(&mut self, discriminators: Vec<u16>) -> Result<(), Problem> {
        let mut rows = vec![0_u32; self.readers.len()];
        self.positions.reserve_exact(discriminators.len());
        for discriminator in &discriminators {
            let position = match rows.get_mut(usize::from(*discriminator)) {
                Some(rows) => {
                    *rows += 1;
                    *rows - 1
                }
                None if *discriminator == Column::NULL_DISCRIMINATOR => 0,
                None => return Err(Problem::Malformed("a row of an alternative that its column has not")),
            };
            self.positions.push(position);
        }
        self.discriminators = discriminators;
        self.readers.iter_mut().zip(rows).for_each(|(reader, rows)| reader.begin(rows as usize));
        Ok(())
    }

    fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        while let Some(reader) = self.readers.get_mut(self.at) {
            done_or_wait!(reader.read(input));
            self.at += 1;
        }
        Ok(Progress::Done)
    }

    /// Removes an alternative that no row is of.
    fn remove_unused(&mut self, place: usize) {
        self.types.remove(place);
        self.readers.remove(place);
        for discriminator in &mut self.discriminators {
            if *discriminator != Column::NULL_DISCRIMINATOR && usize::from(*discriminator) > place {
                *discriminator -= 1;
            }
        }
    }

    fn take(&mut self) -> Column {
        let types = std::mem::take(&mut self.types);
        Column::Variant {
            discriminators: std::mem::take(&mut self.discriminators),
            positions: std::mem::take(&mut self.positions),
            alternatives: types.into_iter().zip(self.readers.iter_mut().map(Reader::take)).collect(),
        }
    }
}

pub(super) struct VariantReader {
    alternatives: Alternatives,
    wire: Gathered,
    prefix_begun: bool,
    /// Says whether the discriminators are there, and the alternatives are being read.
    resolved: bool,
}

impl VariantReader {
    pub(super) fn new(types: &[DataType], depth: usize) -> Result<Self, Problem> {
        let readers = types.iter().map(|alternative| Reader::new(alternative, depth + 1)).collect::<Result<_, _>>()?;
        Ok(VariantReader {
            alternatives: Alternatives { types: types.to_vec(), readers, ..Alternatives::default() },
            wire: Gathered::default(),
            prefix_begun: false,
            resolved: false,
        })
    }

    pub(super) fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if !self.prefix_begun {
            if token_or_wait!(input.u64()) != PLAIN_DISCRIMINATORS {
                return Err(Problem::Malformed("a Variant of unknown form"));
            }
            self.prefix_begun = true;
        }
        self.alternatives.prefix(input)
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.wire.begin(rows);
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if !self.resolved {
            if self.wire.read(input) == Progress::Waiting {
                return Ok(Progress::Waiting);
            }
            let wire = self.wire.take();
            let discriminators = wire.iter().map(|byte| match u16::from(*byte) {
                NULL_IN_VARIANT => Column::NULL_DISCRIMINATOR,
                alternative => alternative,
            });
            self.alternatives.begin(discriminators.collect())?;
            self.resolved = true;
        }
        self.alternatives.read(input)
    }

    pub(super) fn take(&mut self) -> Column {
        self.alternatives.take()
    }
}

pub(super) struct DynamicReader {
    alternatives: Alternatives,
    wire: Gathered,
    depth: usize,
    prefix_stage: DynamicPrefix,
    /// The alternative that holds the values of types without an alternative of their own. Set if it is not
    /// flattened.
    shared: Option<usize>,
    structured: bool,
    resolved: bool,
}

enum DynamicPrefix {
    Version,
    /// The number of types that there may be, which is only sent if it isn't flattened.
    Limit,
    Count,
    Types {
        missing: u64,
    },
    /// The form of the discriminators, which is only sent if it isn't flattened.
    Form,
    Prefixes,
}

impl DynamicReader {
    pub(super) fn new(depth: usize) -> Self {
        DynamicReader {
            alternatives: Alternatives::default(),
            wire: Gathered::default(),
            depth,
            prefix_stage: DynamicPrefix::Version,
            shared: None,
            structured: false,
            resolved: false,
        }
    }

    pub(super) fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        loop {
            match &mut self.prefix_stage {
                DynamicPrefix::Version => {
                    self.prefix_stage = match token_or_wait!(input.u64()) {
                        FLATTENED => DynamicPrefix::Count,
                        STRUCTURED => DynamicPrefix::Limit,
                        _ => return Err(Problem::Form(NOT_FLATTENED)),
                    };
                }
                DynamicPrefix::Limit => {
                    token_or_wait!(input.varint());
                    self.structured = true;
                    self.prefix_stage = DynamicPrefix::Count;
                }
                DynamicPrefix::Count => {
                    let missing = token_or_wait!(input.varint());
                    if missing > MAX_TYPES {
                        return Err(Problem::TooLarge("the types of a Dynamic"));
                    }
                    self.prefix_stage = DynamicPrefix::Types { missing };
                }
                DynamicPrefix::Types { missing: 0 } if self.structured => {
                    self.add_shared()?;
                    self.prefix_stage = DynamicPrefix::Form;
                }
                DynamicPrefix::Types { missing: 0 } => self.prefix_stage = DynamicPrefix::Prefixes,
                DynamicPrefix::Form => {
                    if token_or_wait!(input.u64()) != PLAIN_DISCRIMINATORS {
                        return Err(Problem::Malformed("a Dynamic of unknown form"));
                    }
                    self.prefix_stage = DynamicPrefix::Prefixes;
                }
                DynamicPrefix::Types { missing } => {
                    let name = token_or_wait!(input.text(MAX_TYPE_NAME_BYTES));
                    let alternative = DataType::parse_result_at(name, self.depth + 1).map_err(Problem::Type)?;
                    self.alternatives.readers.push(Reader::new(&alternative, self.depth + 1)?);
                    self.alternatives.types.push(alternative);
                    *missing -= 1;
                }
                DynamicPrefix::Prefixes => return self.alternatives.prefix(input),
            }
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.wire.begin(rows * self.discriminator_width());
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if !self.resolved {
            if self.wire.read(input) == Progress::Waiting {
                return Ok(Progress::Waiting);
            }
            let wire = self.wire.take();
            let discriminators = self.discriminators(&wire);
            if self.shared.is_some_and(|shared| discriminators.contains(&(shared as u16))) {
                return Err(Problem::Form(NOT_FLATTENED));
            }
            self.alternatives.begin(discriminators)?;
            self.resolved = true;
        }
        self.alternatives.read(input)
    }

    pub(super) fn take(&mut self) -> Column {
        if let Some(shared) = self.shared.take() {
            self.alternatives.remove_unused(shared);
        }
        self.alternatives.take()
    }

    /// Adds the alternative of values without a type of their own. Alternatives are in the order of their
    /// names, and this one's name is no type's.
    fn add_shared(&mut self) -> Result<(), Problem> {
        let alternatives = &mut self.alternatives;
        if alternatives.types.len() >= usize::from(NULL_IN_VARIANT) {
            return Err(Problem::TooLarge("the types of a Dynamic"));
        }
        let place = alternatives.types.iter().filter(|of| of.to_string().as_str() < SHARED).count();
        let text = DataType::String;
        alternatives.readers.insert(place, Reader::new(&text, self.depth)?);
        alternatives.types.insert(place, text);
        self.shared = Some(place);
        Ok(())
    }

    /// Returns the bytes of a discriminator. The number of types itself stands for NULL, and has to fit as
    /// well.
    fn discriminator_width(&self) -> usize {
        if self.alternatives.types.len() <= 255 {
            1
        } else {
            2
        }
    }

    fn discriminators(&self, wire: &[u8]) -> Vec<u16> {
        let null = match self.structured {
            true => NULL_IN_VARIANT,
            false => self.alternatives.types.len() as u16,
        };
        let resolved = |wire: u16| if wire == null { Column::NULL_DISCRIMINATOR } else { wire };
        match self.discriminator_width() {
            1 => wire.iter().map(|byte| resolved(u16::from(*byte))).collect(),
            _ => wire.chunks_exact(2).map(|bytes| resolved(u16::from_le_bytes([bytes[0], bytes[1]]))).collect(),
        }
    }
}
