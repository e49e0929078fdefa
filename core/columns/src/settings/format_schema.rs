//! Settings that name the schema of a format which needs one.

use super::{applied_if, SettingEffect};

/// The settings of the schema, as they were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FormatSchema {
    schema: String,
    /// The kind of the schema's source; empty for the default, which is a file of the server's.
    source: String,
    message_name: String,
}

#[derive(Clone, Copy)]
pub(super) enum Which {
    Schema,
    Source,
    MessageName,
}

/// A schema that came with the insert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InlineSchema<'s> {
    pub text: &'s str,
    pub message_name: &'s str,
}

impl FormatSchema {
    pub(super) fn set(&mut self, which: Which, value: &str) -> SettingEffect {
        let target = match which {
            Which::Schema => &mut self.schema,
            Which::Source => &mut self.source,
            Which::MessageName => &mut self.message_name,
        };
        value.clone_into(target);
        applied_if(!matches!(which, Which::Source) || matches!(value, "file" | "string"))
    }

    pub(super) fn inline(&self) -> Option<InlineSchema<'_>> {
        let is_whole = self.source == "string" && !self.schema.is_empty() && !self.message_name.is_empty();
        is_whole.then_some(InlineSchema { text: &self.schema, message_name: &self.message_name })
    }
}
