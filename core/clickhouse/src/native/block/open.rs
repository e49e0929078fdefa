//! JSON and Dynamic: the head before such a column says what is in it, and is needed again for the values.
//!
//! ClickHouse writes the heads of all types inside a column first, depth first, and the values in the same
//! order. So the heads are kept in a queue, and each JSON or Dynamic takes the first head when its values
//! begin.

use std::sync::{Arc, LazyLock};

use super::shape::Shape;
use super::{bytes_of, BlockReader, Step};
use crate::native::input::{Fault, Input};
use windrow_columns::wire::PLAIN_DISCRIMINATORS;

/// The forms of a JSON. The one that is missing, 4, is only used on disk.
mod json_form {
    /// The same as `PATHS`, after the limit of paths.
    pub(super) const LIMITED_PATHS: u64 = 0;
    pub(super) const TEXT: u64 = 1;
    /// Paths, and after them the paths of each row that had no room among them.
    pub(super) const PATHS: u64 = 2;
    pub(super) const FLAT: u64 = 3;
}

/// The forms of a Dynamic. The one that is missing, 4, is only used on disk.
mod dynamic_form {
    /// The same as `VARIANT`, after the limit of types.
    pub(super) const LIMITED_VARIANT: u64 = 1;
    /// A Variant of the Dynamic's types and of the shared one.
    pub(super) const VARIANT: u64 = 2;
    pub(super) const FLAT: u64 = 3;
}

/// The type of values that had no room among a Dynamic's types: a String. It is sorted among the types by this name.
const SHARED: &str = "SharedVariant";
/// The most types of a Dynamic in the form of a Variant. A byte names a row's type, and two values are the
/// shared type and NULL.
const MAX_VARIANT_TYPES: u64 = 254;
const MAX_FLAT_TYPES: u64 = u16::MAX as u64;
/// The most bytes of the names of types inside one column.
const MAX_NAMED_BYTES: usize = 1 << 20;

const ON_DISK: Fault = Fault::Unsupported("a form of JSON or Dynamic that is only used on disk");

/// Paths and values that had no room among a JSON's paths, as an Array of pairs.
static SHARED_PATHS: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    let [path, value] = [Arc::new(Shape::String), Arc::new(Shape::String)];
    Arc::new(Shape::Array(Arc::new(Shape::Tuple(vec![path, value]))))
});

/// The head of a column: what was said before its values.
#[derive(Debug)]
pub(super) enum Opened {
    /// Documents, as text.
    Texts,
    /// Paths; `others` is the count of those that were not declared.
    Paths { others: u64, has_shared: bool },
    /// The types of a Dynamic.
    Types { types: Vec<Arc<Shape>>, is_flat: bool },
}

impl BlockReader {
    pub(super) fn json_head(
        &mut self,
        declared: &[Arc<Shape>],
        input: &mut Input<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let head = input.clone();
        let form = input.u64()?;
        let others = match form {
            json_form::TEXT => 0,
            json_form::LIMITED_PATHS => input.varint().and_then(|_| input.varint())?,
            json_form::PATHS | json_form::FLAT => input.varint()?,
            _ => return Err(ON_DISK),
        };
        out.extend_from_slice(head.between(input));
        if form == json_form::TEXT {
            self.opened.push_back(Opened::Texts);
            return Ok(());
        }
        self.opened.push_back(Opened::Paths { others, has_shared: form != json_form::FLAT });
        if others > 0 {
            self.steps.push(Step::DynamicHeads(others));
        }
        declared.iter().rev().for_each(|path| path.prefix(&mut self.steps));
        self.steps.push(Step::Strings(others));
        Ok(())
    }

    pub(super) fn dynamic_head(&mut self, heads: u64, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let head = input.clone();
        let form = input.u64()?;
        let types = match form {
            dynamic_form::LIMITED_VARIANT => input.varint().and_then(|_| input.varint())?,
            dynamic_form::VARIANT | dynamic_form::FLAT => input.varint()?,
            _ => return Err(ON_DISK),
        };
        let is_flat = form == dynamic_form::FLAT;
        if types > if is_flat { MAX_FLAT_TYPES } else { MAX_VARIANT_TYPES } {
            return Err(Fault::Unsupported("a Dynamic of more types than Windrow counts"));
        }
        out.extend_from_slice(head.between(input));
        if heads > 1 {
            self.steps.push(Step::DynamicHeads(heads - 1));
        }
        self.steps.push(Step::TypeNames { left: types, is_flat, types: Vec::new() });
        Ok(())
    }

    /// Reads the next name of a Dynamic's types. After the last name, it puts the heads of the types on the stack.
    pub(super) fn type_name(
        &mut self,
        left: u64,
        is_flat: bool,
        types: &mut Vec<(Box<str>, Arc<Shape>)>,
        input: &mut Input<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if left > 0 {
            let head = input.clone();
            let name = input.text(MAX_NAMED_BYTES, "the name of a type")?;
            self.named_bytes += name.len();
            if self.named_bytes > MAX_NAMED_BYTES {
                return Err(Fault::Unsupported("a column with more names of types than Windrow reads"));
            }
            let (data_type, shape) = Shape::named(name)?;
            // ClickHouse sorts them by the names that it has for them.
            if !is_flat && data_type.to_string() != name {
                return Err(Fault::Unsupported("a type that ClickHouse spells in another way"));
            }
            types.push((name.into(), shape));
            out.extend_from_slice(head.between(input));
            self.steps.push(Step::TypeNames { left: left - 1, is_flat, types: std::mem::take(types) });
            return Ok(());
        }
        let mut types = std::mem::take(types);
        if !is_flat {
            sort(&mut types)?;
        }
        let types: Vec<Arc<Shape>> = types.into_iter().map(|(_, shape)| shape).collect();
        types.iter().rev().for_each(|shape| shape.prefix(&mut self.steps));
        if !is_flat {
            self.steps.push(Step::Word(PLAIN_DISCRIMINATORS));
        }
        self.opened.push_back(Opened::Types { types, is_flat });
        Ok(())
    }

    pub(super) fn json_values(&mut self, declared: &[Arc<Shape>], rows: u64) -> Result<(), Fault> {
        match self.opened.pop_front() {
            Some(Opened::Texts) => self.steps.push(Step::Strings(rows)),
            Some(Opened::Paths { others, has_shared }) => {
                if has_shared {
                    self.steps.push(Step::Values(SHARED_PATHS.clone(), rows));
                }
                if others > 0 {
                    self.steps.push(Step::Dynamics(others, rows));
                }
                self.steps.extend(declared.iter().rev().map(|path| Step::Values(path.clone(), rows)));
            }
            _ => return Err(OUT_OF_ORDER),
        }
        Ok(())
    }

    /// Begins the values of the first Dynamic, and puts the others back on the stack.
    pub(super) fn dynamic_values(&mut self, dynamics: u64, rows: u64) -> Result<(), Fault> {
        if dynamics > 1 {
            self.steps.push(Step::Dynamics(dynamics - 1, rows));
        }
        match self.opened.pop_front() {
            Some(Opened::Types { types, is_flat: true }) => self.steps.push(Step::Indexes(types, rows)),
            Some(Opened::Types { types, is_flat: false }) => self.steps.push(Step::Discriminators(types, rows)),
            _ => return Err(OUT_OF_ORDER),
        }
        Ok(())
    }

    /// Reads the index of each row's type, and puts the values of each type on the stack.
    pub(super) fn indexes(
        &mut self,
        types: &[Arc<Shape>],
        rows: u64,
        input: &mut Input<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        // NULL has an index of its own, behind theirs.
        let width = if types.len() < 1 << 8 { 1 } else { 2 };
        let indexes = input.take(bytes_of(rows, width)?)?;
        let mut counts = vec![0; types.len() + 1];
        for index in indexes.chunks_exact(width) {
            let index = index.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte));
            *counts.get_mut(index).ok_or(Fault::Malformed("a Dynamic of no type"))? += 1;
        }
        out.extend_from_slice(indexes);
        let values = types.iter().zip(counts).rev();
        self.steps.extend(values.map(|(shape, count)| Step::Values(shape.clone(), count)));
        Ok(())
    }
}

const OUT_OF_ORDER: Fault = Fault::Malformed("values of a JSON or Dynamic that nothing stood in front of");

/// Sorts a Dynamic's types like the alternatives of a Variant, together with the shared type.
fn sort(types: &mut Vec<(Box<str>, Arc<Shape>)>) -> Result<(), Fault> {
    // Of a JSON's arguments ClickHouse has an order of its own.
    if types.iter().filter(|(name, _)| name.contains("JSON(")).count() > 1 {
        return Err(Fault::Unsupported("a Dynamic of several types of JSON"));
    }
    types.push((SHARED.into(), Arc::new(Shape::String)));
    types.sort_by(|(one, _), (other, _)| one.cmp(other));
    match types.windows(2).all(|pair| pair[0].0 != pair[1].0) {
        true => Ok(()),
        false => Err(Fault::Unsupported("a Dynamic that names a type twice")),
    }
}
