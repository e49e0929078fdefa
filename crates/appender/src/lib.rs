//! The program that appends: cuts a source into numbered batches and sends them over several connections.
