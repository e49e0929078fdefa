//! Results of the real engine in the Native format, as a client reads them.

mod arrow;
mod decode;
mod support;
