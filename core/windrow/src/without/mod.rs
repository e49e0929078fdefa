//! Stand-ins for parts that the program is built without: each file is the module that bears its name.

/// Returns the text that a setting asks for a part that is not built in.
pub(crate) fn missing(feature: &str, what: &str) -> String {
    format!("{what} can't be had: this program is built without the feature `{feature}` of Cargo")
}
