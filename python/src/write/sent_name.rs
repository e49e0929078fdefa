//! The type that a column is sent as, which may be a simpler one than the table's: ClickHouse converts it.

use windrow_columns::results::Type;
use windrow_columns::write_identifier;

/// LowCardinality is left out (ClickHouse builds its dictionaries itself), and so are the names of types that may have it
/// inside. `Dynamic` is sent as the String that its values are written as. Inside a Variant everything stays: ClickHouse
/// converts a Variant only into one with the same alternatives.
pub(super) fn sent_name(column_type: &Type) -> String {
    match column_type {
        Type::LowCardinality(inner) => sent_name(inner),
        Type::Nullable(inner) => format!("Nullable({})", sent_name(inner)),
        Type::Array(inner) => format!("Array({})", sent_name(inner)),
        Type::Map(key, value) => format!("Map({}, {})", sent_name(key), sent_name(value)),
        Type::Tuple { names, elements } => {
            let elements = elements.iter().enumerate().map(|(index, element)| {
                let mut element_name = String::new();
                if let Some(name) = names.as_ref().and_then(|names| names.get(index)) {
                    // Writing to a String doesn't fail.
                    let _ = write_identifier(&mut element_name, name);
                    element_name.push(' ');
                }
                element_name + &sent_name(element)
            });
            format!("Tuple({})", elements.collect::<Vec<_>>().join(", "))
        }
        Type::Dynamic => "String".to_string(),
        Type::Alias { name, inner } => match inner.as_ref() {
            Type::Dynamic => "String".to_string(),
            _ if name.starts_with("SimpleAggregateFunction") || name.starts_with("Nested") => sent_name(inner),
            _ => name.clone(),
        },
        other => other.to_string(),
    }
}
