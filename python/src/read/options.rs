//! The caller's wishes for values: formats, encoding, NULL, time zones.
//!
//! The Python side spells out patterns of type names (`IPv*`), once; here every format has the name of one type.

use std::collections::HashMap;
use std::ffi::CString;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The form in which values of a type are shown. Values of a type that has no such form are shown in their
/// native one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Native,
    String,
    Bytes,
    Int,
    Signed,
    Time,
    Tuple,
    Json,
    Pairs,
    Typed,
}

impl Format {
    /// Returns the format that a word stands for. An unknown word stands for the native one.
    fn of(word: &str) -> Format {
        match word {
            "string" => Format::String,
            "bytes" => Format::Bytes,
            "int" => Format::Int,
            "signed" => Format::Signed,
            "time" => Format::Time,
            "tuple" => Format::Tuple,
            "json" => Format::Json,
            "pairs" => Format::Pairs,
            "typed" => Format::Typed,
            _ => Format::Native,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Format::Native => "native",
            Format::String => "string",
            Format::Bytes => "bytes",
            Format::Int => "int",
            Format::Signed => "signed",
            Format::Time => "time",
            Format::Tuple => "tuple",
            Format::Json => "json",
            Format::Pairs => "pairs",
            Format::Typed => "typed",
        }
    }
}

/// Formats by the names of types, such as `DateTime64`.
pub type Formats = HashMap<String, Format>;

enum ColumnFormat {
    Whole(Format),
    ByType(Formats),
}

/// The rule for times in UTC: shown naive, or with their zone like all others; or only zones of column and
/// type count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ZoneMode {
    NaiveUtc,
    Aware,
    Schema,
}

#[pyclass(frozen, module = "windrow._core")]
pub struct ReadOptions {
    formats: Formats,
    column_formats: HashMap<String, ColumnFormat>,
    pub encoding: Option<CString>,
    pub use_none: bool,
    zone_mode: ZoneMode,
    /// The zone of columns whose type names no zone. `None`: they are shown naive, in UTC.
    zone: Option<Py<PyAny>>,
    column_zones: HashMap<String, Py<PyAny>>,
}

#[pymethods]
impl ReadOptions {
    #[new]
    #[pyo3(signature = (*, formats=None, column_formats=None, encoding=None, use_none=true, timezone=None, column_timezones=None, tz_mode="naive_utc"))]
    fn new(
        formats: Option<HashMap<String, String>>,
        column_formats: Option<&Bound<'_, PyDict>>,
        encoding: Option<String>,
        use_none: bool,
        timezone: Option<Py<PyAny>>,
        column_timezones: Option<HashMap<String, Py<PyAny>>>,
        tz_mode: &str,
    ) -> PyResult<ReadOptions> {
        let zone_mode = match tz_mode {
            "naive_utc" => ZoneMode::NaiveUtc,
            "aware" => ZoneMode::Aware,
            "schema" => ZoneMode::Schema,
            _ => return Err(PyValueError::new_err("tz_mode is one of naive_utc, aware, schema")),
        };
        let mut by_column = HashMap::new();
        for (column, format) in column_formats.into_iter().flatten() {
            let format = match format.extract::<String>() {
                Ok(word) => ColumnFormat::Whole(Format::of(&word)),
                Err(_) => ColumnFormat::ByType(by_type(format.extract()?)),
            };
            by_column.insert(column.extract()?, format);
        }
        Ok(ReadOptions {
            formats: by_type(formats.unwrap_or_default()),
            column_formats: by_column,
            encoding: encoding.filter(|name| !is_utf8(name)).map(CString::new).transpose()?,
            use_none,
            zone_mode,
            zone: timezone,
            column_zones: column_timezones.unwrap_or_default(),
        })
    }
}

fn by_type(words: HashMap<String, String>) -> Formats {
    words.into_iter().map(|(name, word)| (name, Format::of(&word))).collect()
}

fn is_utf8(encoding: &str) -> bool {
    encoding.is_empty() || encoding.eq_ignore_ascii_case("utf8") || encoding.eq_ignore_ascii_case("utf-8")
}

/// The options as they apply to one column.
#[derive(Clone, Copy)]
pub struct ColumnOptions<'a> {
    options: &'a ReadOptions,
    formats: Option<&'a ColumnFormat>,
    zone: Option<&'a Py<PyAny>>,
}

impl ReadOptions {
    pub fn column(&self, name: &str) -> ColumnOptions<'_> {
        ColumnOptions { options: self, formats: self.column_formats.get(name), zone: self.column_zones.get(name) }
    }
}

impl ColumnOptions<'_> {
    pub fn options(&self) -> &ReadOptions {
        self.options
    }

    /// Returns the format of values of a type, by its name without arguments.
    pub fn format(&self, type_name: &str) -> Format {
        match self.formats {
            Some(ColumnFormat::Whole(format)) => return *format,
            Some(ColumnFormat::ByType(formats)) => {
                if let Some(format) = formats.get(type_name) {
                    return *format;
                }
            }
            None => {}
        }
        self.options.formats.get(type_name).copied().unwrap_or(Format::Native)
    }

    /// Returns the zone that values are shown in, if any: the column's own, the type's, or the one for all.
    /// `None` stands for naive, in UTC.
    pub fn zone(&self, py: Python<'_>, type_zone: Option<&str>) -> PyResult<Option<Py<PyAny>>> {
        let options = self.options;
        let own = match (self.zone, type_zone) {
            (Some(zone), _) => Some(zone.clone_ref(py)),
            (None, Some(name)) => {
                Some(python_zones(py)?.call_method1(intern!(py, "column_timezone"), (name,))?.unbind())
            }
            (None, None) => None,
        };
        if options.zone_mode == ZoneMode::Schema {
            return Ok(own);
        }
        let Some(zone) = own else { return Ok(options.zone.as_ref().map(|zone| zone.clone_ref(py))) };
        let naive = options.zone_mode == ZoneMode::NaiveUtc
            && python_zones(py)?.call_method1(intern!(py, "is_utc_timezone"), (&zone,))?.is_truthy()?;
        Ok((!naive).then_some(zone))
    }
}

fn python_zones(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("windrow._shared.timezones")
}
