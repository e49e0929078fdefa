//! ClickHouse's errors: their texts read and written, and what their codes mean for the sender of a request.
//!
//! All functions are pure, and serve every protocol that Windrow speaks to ClickHouse.

mod codes;
mod text;

pub use codes::ErrorCode;
pub use text::Exception;
