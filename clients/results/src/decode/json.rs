//! `JSON` columns: the declared paths in their types, every other path as a `Dynamic`. If they aren't
//! flattened, the values follow that had no room among the paths; such values are not read here.

use super::error::Problem;
use super::input::{done_or_wait, token_or_wait, Input, Progress};
use super::offsets::OffsetsReader;
use super::reader::Reader;
use super::variant::{FLATTENED, NOT_FLATTENED};
use crate::column::Column;
use windrow_columns::DataType;

/// The version of a JSON that is not flattened, as in `variant.rs`.
const STRUCTURED: u64 = 0;
const MAX_PATHS: u64 = 1 << 20;
const MAX_PATH_BYTES: usize = 16 << 20;

pub(super) struct JsonReader {
    paths: Vec<Path>,
    rows: usize,
    depth: usize,
    /// The first path that isn't whole: of the prefixes first, then of the columns.
    at: usize,
    stage: Stage,
    /// The reader of the number of paths of each row that have no column. Set if the JSON is not flattened.
    shared: Option<OffsetsReader>,
}

struct Path {
    name: String,
    path_type: DataType,
    reader: Reader,
}

enum Stage {
    Version,
    /// The number of paths that there may be, which is only sent if the JSON isn't flattened.
    Limit,
    Count,
    Names {
        missing: u64,
    },
    Prefixes,
}

impl JsonReader {
    pub(super) fn new(typed_paths: &[(String, DataType)], depth: usize) -> Result<Self, Problem> {
        let typed = typed_paths.iter().map(|(name, path_type)| {
            let reader = Reader::new(path_type, depth + 1)?;
            Ok(Path { name: name.clone(), path_type: path_type.clone(), reader })
        });
        let paths = typed.collect::<Result<_, Problem>>()?;
        Ok(JsonReader { paths, rows: 0, depth, at: 0, stage: Stage::Version, shared: None })
    }

    pub(super) fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        loop {
            match &mut self.stage {
                Stage::Version => {
                    self.stage = match token_or_wait!(input.u64()) {
                        FLATTENED => Stage::Count,
                        STRUCTURED => Stage::Limit,
                        _ => return Err(Problem::Form(NOT_FLATTENED)),
                    };
                }
                Stage::Limit => {
                    token_or_wait!(input.varint());
                    self.shared = Some(OffsetsReader::default());
                    self.stage = Stage::Count;
                }
                Stage::Count => {
                    let missing = token_or_wait!(input.varint());
                    if missing > MAX_PATHS {
                        return Err(Problem::TooLarge("the paths of a JSON"));
                    }
                    self.stage = Stage::Names { missing };
                }
                Stage::Names { missing: 0 } => self.stage = Stage::Prefixes,
                Stage::Names { missing } => {
                    let name = token_or_wait!(input.text(MAX_PATH_BYTES)).to_string();
                    let reader = Reader::new(&DataType::Dynamic, self.depth + 1)?;
                    self.paths.push(Path { name, path_type: DataType::Dynamic, reader });
                    *missing -= 1;
                }
                Stage::Prefixes => return self.prefixes(input),
            }
        }
    }

    fn prefixes(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        while let Some(path) = self.paths.get_mut(self.at) {
            done_or_wait!(path.reader.prefix(input));
            self.at += 1;
        }
        self.at = 0;
        Ok(Progress::Done)
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.rows = rows;
        self.paths.iter_mut().for_each(|path| path.reader.begin(rows));
        self.shared.iter_mut().for_each(|shared| shared.begin(rows));
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        while let Some(path) = self.paths.get_mut(self.at) {
            done_or_wait!(path.reader.read(input));
            self.at += 1;
        }
        if let Some(shared) = &mut self.shared {
            done_or_wait!(shared.read(input));
            if shared.elements() > 0 {
                return Err(Problem::Form(NOT_FLATTENED));
            }
        }
        Ok(Progress::Done)
    }

    pub(super) fn take(&mut self) -> Column {
        let mut paths: Vec<_> =
            self.paths.drain(..).map(|mut path| (path.name, path.path_type, path.reader.take())).collect();
        paths.sort_by(|left, right| left.0.cmp(&right.0));
        Column::Json { rows: self.rows, paths }
    }
}
