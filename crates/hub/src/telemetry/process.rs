//! Process metrics from `/proc`, with the standard Prometheus names. Without `/proc` there are
//! none.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks per second in `/proc`; the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Bytes per kibibyte, the unit of memory in `/proc`.
const KIB: f64 = 1024.0;

/// Metrics of this process, read at each scrape.
#[derive(Debug, Default)]
pub struct ProcessCollector {}

/// Values parsed from `/proc`.
#[derive(Debug, Default, PartialEq)]
struct ProcStats {
    cpu_seconds: Option<f64>,
    start_seconds: Option<f64>,
    resident_bytes: Option<f64>,
    virtual_bytes: Option<f64>,
    threads: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let read = ProcStats::read();
        let name = "process_cpu_seconds";
        if let Some(seconds) = read.cpu_seconds {
            let counter = ConstCounter::new(seconds);
            let help = "CPU time used, user and system, in seconds";
            let kind = counter.metric_type();
            counter.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        for (name, help, value) in [
            ("process_start_time_seconds", "Start time in seconds since 1970", read.start_seconds),
            ("process_resident_memory_bytes", "Resident memory in bytes", read.resident_bytes),
            ("process_virtual_memory_bytes", "Virtual memory in bytes", read.virtual_bytes),
            ("process_threads", "Threads", read.threads),
            ("process_open_fds", "Open file descriptors", read.open_fds),
            ("process_max_fds", "Maximum number of open file descriptors", read.max_fds),
        ] {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                let kind = gauge.metric_type();
                gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
            }
        }
        Ok(())
    }
}

impl ProcStats {
    fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let open_fds = fs::read_dir("/proc/self/fd").ok().map(|all| all.count() as f64);
        let (stat, boot) = (text("/proc/self/stat"), text("/proc/stat"));
        let (status, limits) = (text("/proc/self/status"), text("/proc/self/limits"));
        Self { open_fds, ..Self::parse(&stat, &boot, &status, &limits) }
    }

    fn parse(stat: &str, boot: &str, status: &str, limits: &str) -> Self {
        // The second field is a name in parentheses, which may contain anything.
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        let ticks = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
        let kib = |name| Some(value(status, name)? * KIB);
        Self {
            cpu_seconds: ticks(11).zip(ticks(12)).map(|(user, system)| user + system),
            start_seconds: ticks(19).zip(value(boot, "btime")).map(|(since, boot)| boot + since),
            resident_bytes: kib("VmRSS:"),
            virtual_bytes: kib("VmSize:"),
            threads: value(status, "Threads:"),
            open_fds: None,
            max_fds: value(limits, "Max open files"),
        }
    }
}

/// The number after a name at the beginning of a line.
fn value(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_where_the_system_puts_them() {
        let stat = "77 (a ) b) S 1 77 77 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 12345 1 2";
        let status = "Name:\tx\nVmSize:\t  2048 kB\nVmRSS:\t 1024 kB\nThreads:\t9\n";
        let limits =
            "Limit  Soft Limit  Hard Limit\nMax open files            1024   4096   files\n";
        let read = ProcStats::parse(stat, "cpu 1\nbtime 1000\n", status, limits);
        let wanted = ProcStats {
            cpu_seconds: Some(3.0),
            start_seconds: Some(1_123.45),
            resident_bytes: Some(1_048_576.0),
            virtual_bytes: Some(2_097_152.0),
            threads: Some(9.0),
            open_fds: None,
            max_fds: Some(1_024.0),
        };
        assert_eq!(read, wanted);
        assert_eq!(ProcStats::parse("", "", "", ""), ProcStats::default(), "no input, no values");
    }
}
