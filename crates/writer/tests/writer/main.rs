//! The writer's core over its buffers in memory and on a disk.

mod damage;
mod disk;
mod gathering;
mod golden;
mod kill;
mod model;
mod support;
