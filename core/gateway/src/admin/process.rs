//! CPU time and memory of this process, as Linux reports them. On other systems nothing is known.

use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::param::{clock_ticks_per_second, page_size};

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ProcessUsage {
    /// User and system time of all threads since the start.
    pub(super) cpu_seconds: f64,
    pub(super) memory_bytes: u64,
}

pub(super) fn process_usage() -> Option<ProcessUsage> {
    usage_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Metrics that every process has in Prometheus, under their usual names.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    pub(super) started_ms: u64,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut write = |name, help, unit: Option<Unit>, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?)
        };
        let started = ConstGauge::new(self.started_ms as f64 / 1e3);
        write("process_start_time", "When the process started, since 1970", Some(Unit::Seconds), &started)?;
        let Some(usage) = process_usage() else { return Ok(()) };
        let cpu = ConstCounter::new(usage.cpu_seconds);
        write("process_cpu", "User and system time of the process", Some(Unit::Seconds), &cpu)?;
        let memory = ConstGauge::new(usage.memory_bytes as i64);
        write("process_resident_memory", "Memory that the process has", Some(Unit::Bytes), &memory)?;
        let Ok(files) = fs::read_dir("/proc/self/fd") else { return Ok(()) };
        write("process_open_fds", "Files that the process has open", None, &ConstGauge::new(files.count() as i64))
    }
}

/// Reads `/proc/self/stat`. Fields are counted after the name, which may hold spaces and brackets itself.
fn usage_of(stat: &str) -> Option<ProcessUsage> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let resident_pages: u64 = fields.nth(8)?.parse().ok()?;
    Some(ProcessUsage {
        cpu_seconds: (user + system) as f64 / clock_ticks_per_second() as f64,
        memory_bytes: resident_pages * page_size() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_right_fields_whatever_the_name() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 700 55 9 9 20 0 30 0 1 2 3";
        let usage = usage_of(stat).unwrap();
        assert_eq!(usage.cpu_seconds, 755.0 / clock_ticks_per_second() as f64);
        assert_eq!(usage.memory_bytes, 3 * page_size() as u64);
        assert!(usage_of(&stat[..stat.len() - 2]).is_none());
    }
}
