//! The writer's core over its buffers in memory, on a disk and in Redis.

mod damage;
mod disk;
mod gathering;
mod golden;
mod kill;
mod model;
mod redis;
mod support;
