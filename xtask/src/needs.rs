//! Tools that the steps need on this machine, checked before the first step starts.
//!
//! Everything that must be installed for the tests belongs here. Tools are checked for and never
//! installed silently. Only a browser, PostgreSQL and libfaketime are installed, with a message, and
//! only if the user is root; without them their tests are skipped, and fail in CI. PostgreSQL is not started
//! here: each test process starts its own server when a test needs one (`testkit::postgres` of the
//! engine). The packages of foreign clients are not tools: their tests install them into the target
//! directory, which needs only Node with npm, and Python with pip.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Step, cargo};

/// Something a step cannot run without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The formatter.
    Rustfmt,
    /// The linter.
    Clippy,
    /// Runs foreign clients.
    Node,
    /// Installs them.
    Npm,
    /// Runs the Python agent that `rialto init` generates, and clients made from the API document.
    Python,
}

impl Need {
    fn of(step: Step) -> &'static [Self] {
        match step {
            Step::Fmt => &[Self::Rustfmt],
            Step::Clippy => &[Self::Clippy],
            Step::Tests => &[Self::Node, Self::Npm, Self::Python],
            Step::Borders | Step::Words | Step::Sim | Step::Docs => &[],
        }
    }

    fn is_met(self) -> bool {
        let mut command = match self {
            Self::Rustfmt | Self::Clippy => cargo(),
            Self::Node => Command::new("node"),
            Self::Npm => Command::new("npm"),
            Self::Python => Command::new("python3"),
        };
        let command = match self {
            Self::Rustfmt => command.arg("fmt"),
            Self::Clippy => command.arg("clippy"),
            Self::Node | Self::Npm | Self::Python => &mut command,
        };
        runs(command.arg("--version"))
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt is missing; install it with `rustup component add rustfmt`",
            Self::Clippy => "clippy is missing; install it with `rustup component add clippy`",
            Self::Node => {
                "node is missing; the tests with foreign clients need Node.js 20 or later, see https://nodejs.org"
            }
            Self::Npm => {
                "npm is missing; it installs the foreign clients and comes with Node.js, see https://nodejs.org"
            }
            Self::Python => {
                "python3 is missing; the tests of the Python agent that `rialto init` generates and of Python clients need Python 3.10 or later with pip, see https://www.python.org"
            }
        }
    }
}

/// The missing tools. Its text says how to install them.
#[derive(Debug)]
pub struct Missing(Vec<Need>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedies: Vec<_> = self.0.iter().map(|need| need.remedy()).collect();
        write!(f, "xtask: {}", remedies.join("\nxtask: "))
    }
}

/// Checks for everything `steps` need, so that a missing tool is reported at once and not half an
/// hour into the run.
pub fn check(steps: &[Step]) -> Result<(), Missing> {
    let missing: Vec<Need> = steps
        .iter()
        .flat_map(|step| Need::of(*step))
        .copied()
        .filter(|need| !need.is_met())
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

/// Program names of Chromium.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Installs the browser that some tests need.
pub fn get_browser(steps: &[Step]) {
    let is_there = CHROMIUM.iter().any(|name| runs(Command::new(name).arg("--version")));
    if steps.contains(&Step::Tests) && !is_there {
        get_package("chromium", "the tests with a real browser");
    }
}

/// Where Debian's package has the library that gives a process another clock, by architecture.
const FAKETIME_FILE: &str = "faketime/libfaketimeMT.so.1";

/// Installs the library with which a test lets clocks jump.
pub fn get_faketime(steps: &[Step]) {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let is_there =
        folders.map(|folder| folder.path().join(FAKETIME_FILE)).any(|file| file.exists());
    if steps.contains(&Step::Tests) && !is_there {
        get_package("libfaketime", "the tests with clocks that jump");
    }
}

/// Where Debian has the programs of a PostgreSQL server, by version: they are not on the path.
const POSTGRES_OF_DEBIAN: &str = "/usr/lib/postgresql";
/// Names another folder. Empty: the tests behave as if PostgreSQL were not installed.
const POSTGRES_FOLDER: &str = "RIALTO_TEST_POSTGRES_BIN";
/// What Debian's package reads before it creates a database for the whole machine.
const CREATE_CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs the PostgreSQL that some tests start.
pub fn get_postgres(steps: &[Step]) {
    if has_postgres() || !steps.contains(&Step::Tests) {
        return;
    }
    // With a chosen folder, another PostgreSQL would not be used.
    if std::env::var_os(POSTGRES_FOLDER).is_some() {
        return println!(
            "xtask: {POSTGRES_FOLDER} has no PostgreSQL; the tests that need it are skipped"
        );
    }
    // The tests need the programs only. Without this file the package also starts a server on this
    // machine. It is removed again, so that a later installation is as usual.
    let is_ours = create_new(Path::new(CREATE_CLUSTER), "create_main_cluster = false\n");
    get_package("postgresql", "the tests with PostgreSQL");
    if is_ours {
        let _ = fs::remove_file(CREATE_CLUSTER);
    }
}

/// Whether the tests will find a server, by the same rules as `testkit::postgres`.
fn has_postgres() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("RIALTO_TEST_DATABASE_URL") {
        return true;
    }
    let has_server = |folder: &PathBuf| {
        ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
    };
    if let Some(folder) = std::env::var_os(POSTGRES_FOLDER) {
        return has_server(&folder.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir(POSTGRES_OF_DEBIAN).into_iter().flatten().flatten();
    let of_debian = versions.map(|version| version.path().join("bin"));
    std::env::split_paths(&path).chain(of_debian).any(|folder| has_server(&folder))
}

/// Creates a file with its folder. `false` if it exists or cannot be created.
fn create_new(path: &Path, text: &str) -> bool {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let file = folder.and_then(|()| fs::File::create_new(path));
    file.and_then(|mut file| file.write_all(text.as_bytes())).is_ok()
}

/// Installs one of Debian's packages, if possible. If not, its tests are skipped with a message, or
/// fail in CI.
fn get_package(package: &str, tests: &str) {
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        println!(
            "xtask: {package} is missing, so {tests} are skipped; install it with `apt-get install \
             {package}`"
        );
        return;
    }
    println!("xtask: {package} is missing; installing Debian's package");
    if !install(package) {
        println!("xtask: {package} could not be installed; {tests} cannot run");
    }
}

fn install(package: &str) -> bool {
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        apt.status().is_ok_and(|status| status.success())
    };
    // A new machine may not have a package list yet.
    let install = ["install", "--yes", "--no-install-recommends", package];
    apt(&install) || apt(&["update"]) && apt(&install)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Whether a command succeeds.
fn runs(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_tool_is_named_with_its_remedy() {
        let said = Missing(vec![Need::Rustfmt, Need::Clippy, Need::Node, Need::Npm]).to_string();
        assert!(said.contains("rustup component add rustfmt"), "{said}");
        assert!(said.contains("rustup component add clippy"), "{said}");
        assert_eq!(said.matches("https://nodejs.org").count(), 2, "{said}");
    }

    #[test]
    fn a_step_that_only_compiles_needs_nothing_more() {
        assert!(check(&[Step::Borders, Step::Docs]).is_ok());
    }
}
