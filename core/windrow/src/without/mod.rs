//! What stands for parts that the program is built without: each file is the module that bears its name.

/// Says that a setting asks for what is not there.
pub(crate) fn missing(feature: &str, what: &str) -> String {
    format!("{what} can't be had: this program is built without the feature `{feature}` of Cargo")
}
