//! Memory of the whole process, for targets whose work is done by other threads: the allocation
//! counter covers only the thread that runs the check.
//!
//! Only Linux reports it, so elsewhere the memory of such a target is not checked.

use std::fs;

/// Lines of `/proc/self/status`: current and peak memory.
const NOW: &str = "VmRSS:";
const MOST: &str = "VmHWM:";
/// Written to `/proc/self/clear_refs`, it resets the peak.
const FORGET: &str = "5";

/// The memory before an operation, to be compared with the peak during it.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    before: Option<u64>,
}

impl Memory {
    pub fn now() -> Self {
        // If resetting is not allowed, an earlier higher peak hides smaller ones, and nothing else
        // changes.
        let _ = fs::write("/proc/self/clear_refs", FORGET);
        Self { before: said(NOW) }
    }

    /// How far the peak since then was above the memory before.
    pub fn grown(self) -> u64 {
        let most = said(MOST).zip(self.before);
        most.map_or(0, |(most, before)| most.saturating_sub(before))
    }
}

fn said(line: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let text = status.lines().find_map(|one| one.strip_prefix(line))?;
    let kib: u64 = text.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
