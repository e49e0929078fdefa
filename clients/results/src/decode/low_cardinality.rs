//! `LowCardinality` columns: a dictionary for the block, and for every row the place of its value in the
//! dictionary.

use super::error::Problem;
use super::input::{done_or_wait, token_or_wait, Gathered, Input, Progress};
use super::reader::Reader;
use crate::column::Column;
use windrow_columns::wire::{position_bytes, DICTIONARY_VERSION};

pub(super) struct LowCardinalityReader {
    dictionary: Box<Reader>,
    nullable: bool,
    rows: usize,
    stage: Stage,
    index_width: usize,
    keys: usize,
    places: Gathered,
    indices: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Stage {
    Form,
    Keys,
    Dictionary,
    Rows,
    Places,
}

impl LowCardinalityReader {
    pub(super) fn new(dictionary: Reader, nullable: bool) -> Self {
        LowCardinalityReader {
            dictionary: Box::new(dictionary),
            nullable,
            rows: 0,
            stage: Stage::Form,
            index_width: 1,
            keys: 0,
            places: Gathered::default(),
            indices: Vec::new(),
        }
    }

    pub(super) fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        match token_or_wait!(input.u64()) {
            DICTIONARY_VERSION => Ok(Progress::Done),
            _ => Err(Problem::Malformed("a LowCardinality of unknown form")),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.rows = rows;
        self.dictionary.begin(0);
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if self.rows == 0 {
            return Ok(Progress::Done);
        }
        loop {
            match self.stage {
                Stage::Form => {
                    let width = position_bytes(token_or_wait!(input.u64()));
                    self.index_width =
                        width.ok_or(Problem::Malformed("a LowCardinality without its own dictionary"))?;
                    self.stage = Stage::Keys;
                }
                Stage::Keys => {
                    let keys = token_or_wait!(input.u64());
                    self.keys = i32::try_from(keys).map_err(|_| Problem::TooLarge("the dictionaries"))? as usize;
                    self.dictionary.begin(self.keys);
                    self.stage = Stage::Dictionary;
                }
                Stage::Dictionary => {
                    done_or_wait!(self.dictionary.read(input));
                    self.stage = Stage::Rows;
                }
                Stage::Rows => {
                    if token_or_wait!(input.u64()) != self.rows as u64 {
                        return Err(Problem::Malformed("a LowCardinality with another number of rows than its block"));
                    }
                    self.places.begin(self.rows * self.index_width);
                    self.stage = Stage::Places;
                }
                Stage::Places => {
                    if self.places.read(input) == Progress::Waiting {
                        return Ok(Progress::Waiting);
                    }
                    return self.resolve();
                }
            }
        }
    }

    pub(super) fn take(&mut self) -> Column {
        Column::LowCardinality {
            indices: std::mem::take(&mut self.indices),
            dictionary: Box::new(self.dictionary.take()),
            nullable: self.nullable,
        }
    }

    fn resolve(&mut self) -> Result<Progress, Problem> {
        let places = self.places.take();
        self.indices = widened(&places, self.index_width);
        let highest = self.indices.iter().copied().max().unwrap_or(0);
        if highest as usize >= self.keys {
            return Err(Problem::Malformed("a row that is not in the dictionary"));
        }
        Ok(Progress::Done)
    }
}

/// Reads places of `width` bytes. A place that does not fit 32 bits becomes the largest one, which is over
/// every dictionary's end.
fn widened(places: &[u8], width: usize) -> Vec<u32> {
    match width {
        1 => places.iter().map(|place| u32::from(*place)).collect(),
        2 => places.chunks_exact(2).map(|place| u32::from(u16::from_le_bytes([place[0], place[1]]))).collect(),
        4 => places
            .chunks_exact(4)
            .map(|place| u32::from_le_bytes(place.try_into().expect("chunks of 4 bytes")))
            .collect(),
        _ => places
            .chunks_exact(8)
            .map(|place| u64::from_le_bytes(place.try_into().expect("chunks of 8 bytes")))
            .map(|place| u32::try_from(place).unwrap_or(u32::MAX))
            .collect(),
    }
}
