//! CPU time, memory and written bytes of a process, as Linux reports them in `/proc`.
//!
//! CPU time is the steadiest figure on a machine that does other work too: it does not depend on
//! how long a request waited for a core. It is kept by thread name, so that a report can show which
//! part of a server used it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

/// One tick of `/proc/*/stat`. Since 2.6 the kernel always reports hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// What every thread of a process has used since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSnapshot(HashMap<u64, ThreadSnapshot>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ThreadSnapshot {
    name: String,
    time: Duration,
    user: Duration,
    system: Duration,
    written: u64,
}

/// What a process used between two snapshots, by thread name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Usage(pub BTreeMap<String, ThreadUsage>);

/// What all threads of one name used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThreadUsage {
    /// CPU time in microseconds outside the kernel.
    pub user_us: f64,
    /// CPU time in microseconds inside the kernel.
    pub system_us: f64,
    /// Bytes passed to `write` calls: files, and sockets where a server uses `writev`.
    pub written_bytes: u64,
}

impl UsageSnapshot {
    /// What the threads of these processes, and all processes of a PostgreSQL, have used so far.
    /// `None` where there is no `/proc`, or one of the processes has ended. The time of a thread that
    /// ends between two snapshots is not counted after the first.
    pub fn take(processes: impl Iterator<Item = u32>, database: Option<u32>) -> Option<Self> {
        let mut threads = HashMap::new();
        for pid in processes {
            threads.extend(read_threads(pid)?);
        }
        if let Some(postgres) = database {
            threads.extend(read_threads(postgres)?);
            threads.extend(children(postgres).filter_map(read_threads).flatten());
        }
        (!threads.is_empty()).then_some(Self(threads))
    }

    /// What was used since an earlier snapshot.
    pub fn since(&self, earlier: &Self) -> Usage {
        let mut by_name: BTreeMap<String, ThreadUsage> = BTreeMap::new();
        let unused = ThreadSnapshot::default();
        for (id, now) in &self.0 {
            let before = earlier.0.get(id).unwrap_or(&unused);
            let time = now.time.saturating_sub(before.time).as_secs_f64() * 1e6;
            let user = now.user.saturating_sub(before.user).as_secs_f64();
            let system = now.system.saturating_sub(before.system).as_secs_f64();
            // The total is exact to the nanosecond; only how it is divided is known in ticks.
            let ticks = user + system;
            let system_us = if ticks > 0.0 { time * system / ticks } else { 0.0 };
            let usage = by_name.entry(now.name.clone()).or_default();
            usage.user_us += time - system_us;
            usage.system_us += system_us;
            usage.written_bytes += now.written.saturating_sub(before.written);
        }
        Usage(by_name)
    }
}

impl Usage {
    /// CPU time in microseconds outside and inside the kernel.
    pub fn cpu_us(&self) -> (f64, f64) {
        let sum = |part: fn(&ThreadUsage) -> f64| self.0.values().map(part).sum();
        (sum(|thread| thread.user_us), sum(|thread| thread.system_us))
    }

    /// All CPU time in microseconds.
    pub fn total_us(&self) -> f64 {
        let (user, system) = self.cpu_us();
        user + system
    }
}

/// What some threads of a process do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    /// Their CPU time so far.
    pub time: Duration,
    /// Whether one of them waits for the disk.
    pub waits_for_disk: bool,
}

impl ThreadActivity {
    /// The threads of a process whose name begins with `prefix`; `None` if there are none.
    pub fn of(pid: u32, prefix: &str) -> Option<Self> {
        let mut all: Option<Self> = None;
        for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
            if !read("comm")?.starts_with(prefix) {
                continue;
            }
            let activity = all.get_or_insert_default();
            let stat = read("stat")?;
            let (user, system) = read_stat(&stat)?;
            let precise = read("schedstat").as_deref().and_then(read_schedstat);
            activity.time += precise.unwrap_or(user + system);
            activity.waits_for_disk |= waits_for_disk(&stat);
        }
        all
    }
}

/// CPU time of the calling thread so far, where the system reports it.
pub fn own_thread_time() -> Option<Duration> {
    read_schedstat(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The third field is the state; `D` is waiting for the disk.
fn waits_for_disk(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('D'))
}

fn read_threads(pid: u32) -> Option<Vec<(u64, ThreadSnapshot)>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let read = |task: fs::DirEntry| {
        let id = task.file_name().to_str()?.parse().ok()?;
        Some((id, read_thread(&task.path())?))
    };
    Some(tasks.filter_map(read).collect())
}

/// The processes that a process has started itself.
fn children(parent: u32) -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        read_parent(&stat) == Some(parent)
    })
}

/// The fourth field.
fn read_parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn read_thread(task: &Path) -> Option<ThreadSnapshot> {
    let read = |file: &str| fs::read_to_string(task.join(file)).ok();
    let name = group_name(&read("comm")?);
    let (user, system) = read_stat(&read("stat")?)?;
    // Exact to the nanosecond where the scheduler reports that, otherwise to the tick.
    let precise = read("schedstat").as_deref().and_then(read_schedstat);
    let time = precise.filter(|time| !time.is_zero()).unwrap_or(user + system);
    // Only the owner of a process may read this, and not every kernel has it.
    let written = read("io").as_deref().and_then(read_written).unwrap_or(0);
    Some(ThreadSnapshot { name, time, user, system, written })
}

/// The name that threads of one kind share: `edge-3` and `edge-4` are both `edge`.
fn group_name(comm: &str) -> String {
    let name = comm.trim();
    let group =
        name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_', ' ']);
    if group.is_empty() { name } else { group }.to_owned()
}

fn read_schedstat(text: &str) -> Option<Duration> {
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// User and system time: the 14th and 15th field. The second field is a name in brackets that may
/// contain anything, so counting starts after it.
fn read_stat(text: &str) -> Option<(Duration, Duration)> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || Some(TICK * fields.next()?.parse::<u32>().ok()?);
    Some((time()?, time()?))
}

fn read_written(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("wchar:"))?.trim().parse().ok()
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
        let times = (Duration::from_millis(1_200), Duration::from_millis(340));
        assert_eq!(read_stat(stat), Some(times));
        assert_eq!((read_stat(""), read_schedstat("")), (None, None));
        assert!(!waits_for_disk(stat) && !waits_for_disk(""));
        assert!(waits_for_disk("42 (a ) b) D 1 1 1"));
        assert_eq!(read_written("rchar: 7\nwchar: 4096\nsyscr: 1\n"), Some(4_096));
        assert_eq!(read_written("rchar: 7\n"), None);
        assert_eq!((read_parent(stat), read_parent("")), (Some(1), None));
    }

    #[test]
    fn threads_of_one_kind_share_a_name() {
        for (comm, name) in
            [("lane\n", "lane"), ("edge-12\n", "edge"), ("edge3", "edge"), ("7", "7"), ("a_1", "a")]
        {
            assert_eq!(group_name(comm), name);
        }
    }

    fn snapshot(threads: &[(u64, &str, u64, u64, u64)]) -> UsageSnapshot {
        let thread = |(id, name, ms, user, system): &(u64, &str, u64, u64, u64)| {
            let thread = ThreadSnapshot {
                name: (*name).to_owned(),
                time: Duration::from_millis(*ms),
                user: TICK * *user as u32,
                system: TICK * *system as u32,
                written: ms * 2,
            };
            (*id, thread)
        };
        UsageSnapshot(threads.iter().map(thread).collect())
    }

    #[test]
    fn only_what_came_since_counts_and_new_threads_count_whole() {
        let before = snapshot(&[(1, "edge", 100, 8, 2), (2, "lane", 50, 5, 0)]);
        let after = snapshot(&[(1, "edge", 140, 11, 3), (3, "edge", 20, 0, 0)]);
        let usage = after.since(&before);
        // Thread 1 used 40 ms, three ticks outside the kernel and one inside.
        let edge = usage.0["edge"];
        assert_eq!((edge.user_us, edge.system_us), (50_000.0, 10_000.0));
        assert_eq!(edge.written_bytes, 120);
        assert_eq!(usage.0.len(), 1, "a thread that has ended is not counted");
        assert_eq!((usage.cpu_us(), usage.total_us()), ((50_000.0, 10_000.0), 60_000.0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_busy_thread_is_counted_under_its_name() {
        let pid = std::process::id();
        let before = UsageSnapshot::take([pid].into_iter(), None).unwrap();
        let work = move || {
            let until = std::time::Instant::now() + Duration::from_millis(60);
            while std::time::Instant::now() < until {}
            (UsageSnapshot::take([pid].into_iter(), None), ThreadActivity::of(pid, "busy"))
        };
        let busy = std::thread::Builder::new().name("busy-1".to_owned()).spawn(work).unwrap();
        let (after, activity) = busy.join().unwrap();
        assert!(after.unwrap().since(&before).0["busy"].user_us > 0.0);
        assert!(activity.unwrap().time > Duration::ZERO);
        assert_eq!(ThreadActivity::of(pid, "no such thread"), None);
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
        assert_eq!(UsageSnapshot::take([u32::MAX].into_iter(), None), None);
    }
}
