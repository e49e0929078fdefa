/// The settings of ClickHouse that change how results are written. The defaults are ClickHouse's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSettings {
    pub quote_64bit_integers: bool,
    pub quote_denormals: bool,
    pub quote_decimals: bool,
    pub escape_forward_slashes: bool,
    pub named_tuples_as_objects: bool,
    /// The client's revision for Native: the setting `client_protocol_version`.
    pub native_revision: u64,
}

impl Default for OutputSettings {
    fn default() -> Self {
        OutputSettings {
            quote_64bit_integers: false,
            quote_denormals: false,
            quote_decimals: false,
            escape_forward_slashes: true,
            named_tuples_as_objects: true,
            native_revision: 0,
        }
    }
}

impl OutputSettings {
    /// Applies a setting with ClickHouse's name. Returns false where it is none of these, or its value is not valid.
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        if name == "client_protocol_version" {
            return value.parse().map(|revision| self.native_revision = revision).is_ok();
        }
        let flag = match value {
            "1" | "true" => true,
            "0" | "false" => false,
            _ => return false,
        };
        let field = match name {
            "output_format_json_quote_64bit_integers" => &mut self.quote_64bit_integers,
            "output_format_json_quote_denormals" => &mut self.quote_denormals,
            "output_format_json_quote_decimals" => &mut self.quote_decimals,
            "output_format_json_escape_forward_slashes" => &mut self.escape_forward_slashes,
            "output_format_json_named_tuples_as_objects" => &mut self.named_tuples_as_objects,
            _ => return false,
        };
        *field = flag;
        true
    }
}
