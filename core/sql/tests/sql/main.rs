//! The crate from outside: statements as clients send them, and texts of any kind.

mod blank_settings;
mod hostile;
mod insert;
mod other;
mod own_tables;
