//! The disk that fails: a small library of our own, loaded into the hub before the system's.
//!
//! `shim.c` says what it can do. It is compiled once, with the C compiler that the toolchain needs
//! anyway, into the directory cargo keeps for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// What goes wrong; the words are those of `shim.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Killed before the call.
    Before,
    /// Killed after it.
    After,
    /// Half of it written, then killed.
    Torn,
    /// No power: all that was not synced is gone.
    Cut,
    /// No power: some of what was not synced is gone.
    Mess,
    Eio,
    Enospc,
    /// Half of it written, and no room for the rest.
    Short,
}

impl Deed {
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

/// What goes wrong, and when.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    env: Vec<(&'static str, String)>,
}

impl Fault {
    /// Nothing; boundaries are only counted.
    pub fn none() -> Self {
        Self::default()
    }

    /// Once, at a boundary.
    pub fn at(deed: Deed, number: u64) -> Self {
        let env = vec![("FAULT_DO", deed.word().to_owned()), ("FAULT_AT", number.to_string())];
        match deed {
            // What was left is tried again, and that is when there is no room.
            Deed::Short => Self { env }.with("FAULT_FOR", "2"),
            _ => Self { env },
        }
    }

    /// At every boundary while the room's switch is on.
    pub fn switched(deed: Deed, room: &Room) -> Self {
        let switch = room.switch().display().to_string();
        Self { env: vec![("FAULT_DO", deed.word().to_owned()), ("FAULT_SWITCH", switch)] }
    }

    /// From there on, always.
    pub fn lasting(self) -> Self {
        self.with("FAULT_FOR", "0")
    }

    /// Only when something is synced, or only when something is written.
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

    /// The environment that has it happen in a room.
    pub fn env(&self, room: &Room) -> Vec<(&'static str, String)> {
        let mut env = vec![
            ("LD_PRELOAD", library().display().to_string()),
            ("FAULT_DIR", room.data().display().to_string()),
            ("FAULT_LOG", room.log().display().to_string()),
        ];
        env.extend(self.env.iter().cloned());
        env
    }
}

/// A data directory, and beside it what the disk is told and tells.
pub struct Room {
    dir: TempDir,
}

impl Room {
    pub fn empty() -> Self {
        Self { dir: TempDir::new().expect("a directory") }
    }

    /// A room with a copy of some data.
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
        // The system names files without links, and so must we.
        self.dir.path().canonicalize().expect("it is there").join(name)
    }

    pub fn switch_on(&self) {
        std::fs::write(self.switch(), "").expect("a file");
    }

    pub fn switch_off(&self) {
        std::fs::remove_file(self.switch()).expect("it was on");
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
    /// The file, as it is called in the data directory.
    pub name: String,
    /// Whether this is where it went wrong.
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
        // Several test runs may share the directory, so nobody writes where somebody reads.
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
