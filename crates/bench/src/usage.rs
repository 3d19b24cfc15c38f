//! CPU time of the hub's own threads and memory of a process, where the system reports them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Names of a hub's threads in this process; the client's threads have other names.
const NAMES: [&str; 3] = ["hub", "lane", "checkpoint"];
/// One tick of `/proc/*/stat`. Since 2.6 the kernel always reports hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// CPU time by thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTime(HashMap<u64, Duration>);

impl CpuTime {
    /// CPU time the hub's threads have used so far. `None` where there is no `/proc`.
    pub fn of_hub() -> Option<Self> {
        let mut used = HashMap::new();
        for entry in fs::read_dir("/proc/self/task").ok()?.flatten() {
            let path = entry.path();
            let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread may end during the scan. Its time up to the last scan stays counted.
            if let (Some(thread), true) = (thread, is_hub(&path))
                && let Some(time) = time(&path)
            {
                used.insert(thread, time);
            }
        }
        (!used.is_empty()).then_some(Self(used))
    }

    /// CPU time used since an earlier snapshot.
    pub fn since(&self, earlier: &Self) -> Duration {
        let used = self.0.iter().map(|(thread, now)| {
            now.saturating_sub(earlier.0.get(thread).copied().unwrap_or_default())
        });
        used.sum()
    }
}

fn is_hub(task: &Path) -> bool {
    fs::read_to_string(task.join("comm")).is_ok_and(|name| NAMES.contains(&name.trim()))
}

/// Exact to the nanosecond where the scheduler reports that, otherwise to the tick.
fn time(task: &Path) -> Option<Duration> {
    let precise = fs::read_to_string(task.join("schedstat")).ok();
    let precise = precise.as_deref().and_then(read_schedstat).filter(|time| !time.is_zero());
    precise.or_else(|| read_stat(&fs::read_to_string(task.join("stat")).ok()?))
}

fn read_schedstat(text: &str) -> Option<Duration> {
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// User and system time: the 14th and 15th field. The second field is a name in brackets that may
/// contain anything, so counting starts after it.
fn read_stat(text: &str) -> Option<Duration> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = |field: Option<&str>| field?.parse::<u32>().ok();
    Some(TICK * (ticks(fields.next())?.checked_add(ticks(fields.next())?)?))
}

/// The resident memory of a process, in bytes. `None` where there is no `/proc` (on anything but
/// Linux), and for a process that has ended.
pub fn rss_bytes(pid: u32) -> Option<u64> {
    read_rss(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// Finds `VmRSS:     5324 kB` among the lines of a status file.
fn read_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_either_form() {
        assert_eq!(read_schedstat("1500 7 3\n"), Some(Duration::from_nanos(1_500)));
        let stat = "42 (a ) b) S 1 1 1 0 -1 4194304 10 0 0 0 120 34 5 6 20 0 9 0";
        assert_eq!(read_stat(stat), Some(Duration::from_millis(1_540)));
        assert_eq!((read_stat(""), read_schedstat("")), (None, None));
    }

    #[test]
    fn only_what_came_since_counts_and_new_threads_count_whole() {
        let cpu = |times: &[(u64, u64)]| {
            CpuTime(times.iter().map(|(id, ms)| (*id, Duration::from_millis(*ms))).collect())
        };
        let (before, after) = (cpu(&[(1, 100), (2, 50)]), cpu(&[(1, 130), (3, 20)]));
        assert_eq!(after.since(&before), Duration::from_millis(50));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_called_hub_is_counted() {
        let work = || {
            let until = std::time::Instant::now() + Duration::from_millis(60);
            while std::time::Instant::now() < until {}
            CpuTime::of_hub()
        };
        let hub = std::thread::Builder::new().name("hub".to_owned()).spawn(work).unwrap();
        let used = hub.join().unwrap().unwrap().since(&CpuTime::default());
        assert!(used > Duration::ZERO, "{used:?}");
    }

    #[test]
    fn the_resident_size_is_read_and_not_one_of_its_neighbours() {
        let status = "Name:\tsleep\nVmPeak:\t   9000 kB\nVmHWM:\t  2000 kB\nVmRSS:\t    1500 kB\n";
        assert_eq!(read_rss(status), Some(1_536_000));
    }

    #[test]
    fn what_cannot_be_read_is_not_zero() {
        assert_eq!(read_rss("Name:\tkthreadd\n"), None);
        assert_eq!(read_rss("VmRSS:\tplenty kB\n"), None);
        assert_eq!(rss_bytes(u32::MAX), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_neither_tiny_nor_huge() {
        let bytes = rss_bytes(std::process::id()).unwrap();
        assert!((100_000..10_000_000_000).contains(&bytes), "{bytes}");
    }
}
