//! ClickHouse's errors: their texts read and written, and what their codes mean for whoever sent the request.
//!
//! Pure functions, for everything that speaks to ClickHouse, whatever it speaks through.

mod codes;
mod text;

pub use codes::ErrorCode;
pub use text::Exception;
