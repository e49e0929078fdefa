//! ClickHouse's types, columns in ClickHouse's Native layout, and the readers that turn payloads into them.
//!
//! Pure functions on bytes: no I/O, no tasks, no clock. A [`ReadPlan`] is built once for a table; with it a [`Format`]
//! turns a payload into a [`Block`], or says [`NotParsed`]: then the payload is left to ClickHouse. Blocks of the same
//! columns are appended to each other and encoded as one Native block.

mod block;
mod calendar;
mod column;
mod expression;
mod format;
mod json_key;
mod native;
mod partition;
mod passthrough;
mod paths;
mod plan;
mod present;
mod read;
mod reader;
mod rows;
mod settings;
mod sharding;
mod types;
pub mod value_text;
mod view;
pub mod wire;
mod zone;

pub use block::{native_pieces, Block};
pub use column::StringsEnd;
pub use format::{families, Families, Format, Lines};
pub use native::{block_rows, decode_columns, decode_native, NativeBlock, NativeError, NativeLimits};
pub use partition::PartitionKey;
pub use passthrough::{
    Joinable, NotJoinable, PassthroughFormat, PassthroughPlan, PassthroughRows, PassthroughSettings,
};
pub use plan::{ColumnSpec, DefaultKind, ReadPlan, ReadPlans};
pub use present::Present;
pub use read::{read_json_each_row, read_values, NotParsed, NotParsedReason, Parsed};
pub use read::{BlockBuilder, ColumnData, Series, SeriesError, StringData, TextValues};
pub use rows::Rows;
pub use settings::{reading_settings, InlineSchema, ReadSettings, ReadingSetting, SettingEffect};
pub use sharding::{cut_by_shard, ShardingKey};
pub use types::{
    write_identifier, AggregateFunction, CustomType, DataType, EnumValue, IntervalUnit, TupleType, TypeError,
};
pub use view::{ColumnView, Layout, Strings};
pub use zone::ZoneChange;
