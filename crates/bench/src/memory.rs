//! Memory used by a process, where the system reports it.

use std::fs;

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
