//! Measures the gateway's readers in this process, by the CPU time that they take to turn payloads into blocks.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings};

use crate::{cpu, Outcome};

#[derive(Debug, Deserialize)]
pub struct Plan {
    format: String,
    /// Names and types of the columns.
    columns: Vec<(String, String)>,
    payload_file: String,
    rows: usize,
    times: u32,
}

#[derive(Debug, Serialize)]
pub struct Read {
    cpu_ms: f64,
}

pub fn run(plan: &Plan) -> Outcome<Read> {
    let payload = std::fs::read(&plan.payload_file)?;
    let format = Format::named(&plan.format).ok_or_else(|| format!("{} is not read", plan.format))?;
    let columns = plan.columns.iter().map(|(name, kind)| {
        let data_type = DataType::parse(kind).map_err(|error| error.to_string())?;
        Ok(ColumnSpec { name: name.clone(), data_type, default_kind: DefaultKind::None })
    });
    let read_plan = ReadPlan::new(columns.collect::<Outcome<_>>()?, ReadSettings::of(format));
    let read_once = || {
        let parsed = (format.read)(black_box(&payload), &read_plan).map_err(|not_parsed| not_parsed.to_string())?;
        match parsed.block.rows() == plan.rows {
            true => {
                drop(black_box(parsed));
                Outcome::Ok(())
            }
            false => Err(format!("{} rows were read instead of {}", parsed.block.rows(), plan.rows).into()),
        }
    };
    // The first one warms caches and allocator.
    read_once()?;
    let before = cpu::seconds();
    (0..plan.times).try_for_each(|_| read_once())?;
    Ok(Read { cpu_ms: (cpu::seconds() - before) * 1000.0 / f64::from(plan.times) })
}
