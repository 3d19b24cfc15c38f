//! A failing disk: a small library that is preloaded into the hub before the system's.
//!
//! `shim.c` documents it. It is compiled once, with the C compiler that the toolchain needs anyway,
//! into cargo's directory for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::crash::log_divisor;

/// By how much the limits of the log are divided: a file of the log ends after some four steps of
/// the script, so that it crosses every kind of boundary several times.
const LOG_DIVISOR: &str = "512";

/// The kind of fault; the words are those of `shim.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Killed before the call.
    Before,
    /// Killed after it.
    After,
    /// Half of it written, then killed.
    Torn,
    /// Power cut: everything that was not synced is lost.
    Cut,
    /// Power cut: some of what was not synced is lost.
    Mess,
    Eio,
    Enospc,
    /// Half of it written, and no space for the rest.
    Short,
}

impl DiskFault {
    fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Torn => "torn",
            Self::Cut => "cut",
            Self::Mess => "mess",
            Self::Eio => "eio",
            Self::Enospc => "enospc",
            Self::Short => "short",
        }
    }
}

/// A kind of fault and its position.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    env: Vec<(&'static str, String)>,
}

impl Fault {
    /// No fault; boundaries are only counted.
    pub fn none() -> Self {
        Self::default()
    }

    /// Once, at a boundary.
    pub fn at(fault: DiskFault, number: u64) -> Self {
        let env = vec![("FAULT_DO", fault.word().to_owned()), ("FAULT_AT", number.to_string())];
        match fault {
            // The caller retries the rest, and that call finds no space.
            DiskFault::Short => Self { env }.with("FAULT_FOR", "2"),
            _ => Self { env },
        }
    }

    /// At every boundary while the switch file exists.
    pub fn switched(fault: DiskFault, room: &DataDir) -> Self {
        let switch = room.switch().display().to_string();
        Self { env: vec![("FAULT_DO", fault.word().to_owned()), ("FAULT_SWITCH", switch)] }
    }

    /// From there on, always.
    pub fn lasting(self) -> Self {
        self.with("FAULT_FOR", "0")
    }

    /// Only at syncs, or only at writes.
    pub fn only(self, class: &str) -> Self {
        self.with("FAULT_ONLY", class)
    }

    /// Only on files whose names end like this.
    pub fn on(self, name: &str) -> Self {
        self.with("FAULT_NAME", name)
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// The environment that causes it for this directory.
    pub fn env(&self, room: &DataDir) -> Vec<(&'static str, String)> {
        let mut env = vec![
            ("LD_PRELOAD", library().display().to_string()),
            ("FAULT_DIR", room.data().display().to_string()),
            ("FAULT_LOG", room.log().display().to_string()),
            log_divisor(LOG_DIVISOR),
        ];
        env.extend(self.env.iter().cloned());
        env
    }
}

/// A data directory, with the shim's control and log files beside it.
pub struct DataDir {
    dir: TempDir,
}

impl DataDir {
    pub fn empty() -> Self {
        Self { dir: TempDir::new().expect("a directory") }
    }

    /// A copy of this data.
    pub fn with(data: &Path) -> Self {
        let room = Self::empty();
        std::fs::create_dir(room.data()).expect("a directory");
        for file in std::fs::read_dir(data).expect("a directory") {
            let file = file.expect("a file");
            let to = room.data().join(file.file_name());
            std::fs::copy(file.path(), to).expect("a copy");
        }
        room
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn switch(&self) -> PathBuf {
        self.path("switch")
    }

    fn log(&self) -> PathBuf {
        self.path("log")
    }

    fn path(&self, name: &str) -> PathBuf {
        // The system resolves links in paths, so this must be the resolved path.
        self.dir.path().canonicalize().expect("it is there").join(name)
    }

    pub fn switch_on(&self) {
        std::fs::write(self.switch(), "").expect("a file");
    }

    pub fn switch_off(&self) {
        std::fs::remove_file(self.switch()).expect("the switch exists");
    }

    /// The boundaries so far.
    pub fn boundaries(&self) -> Vec<Boundary> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(Boundary::read).collect()
    }
}

/// One change on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    pub number: u64,
    /// write, sync, truncate, rename, link, unlink, mkdir
    pub kind: String,
    /// The file's name in the data directory.
    pub name: String,
    /// Whether the fault happened here.
    pub failed: bool,
}

impl Boundary {
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, kind, name, done] = words[..] else { panic!("{line}") };
        let number = number.parse().expect("a number");
        Self { number, kind: kind.to_owned(), name: name.to_owned(), failed: done == "fault" }
    }
}

/// The compiled library.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/faults/shim.c");
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Several test runs may share the directory, so a file is written under another name first.
        let draft = dir.join(format!("faults.{}.new", std::process::id()));
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"])
            .arg(&draft)
            .arg(source)
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("a C compiler called cc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let made = dir.join("faults.so");
        std::fs::rename(draft, &made).expect("it can be renamed");
        made
    })
}
