//! Stands for `pipelines/` where the program is built without the feature `kafka`: there are no pipelines.

use serde_json::{json, Value};

use crate::data::own_tables::{ColumnList, Visible};

pub enum PipelineStatus {}

#[derive(Default)]
pub(crate) struct ShownPipelines;

impl ShownPipelines {
    pub(crate) fn get(&self) -> Vec<PipelineStatus> {
        Vec::new()
    }
}

pub fn pipelines_json(_: &[PipelineStatus]) -> Value {
    json!({ "pipelines": [] })
}

pub(crate) mod own_table {
    use super::{ColumnList, PipelineStatus, Value, Visible};

    pub(crate) const NAME: &str = "windrow_kafka";
    pub(crate) const COLUMNS: ColumnList = &[("pipeline", "LowCardinality(String)")];

    pub(crate) fn rows(_: &[PipelineStatus], _: &Visible<'_>) -> Vec<Value> {
        Vec::new()
    }
}
