//! Checks dependencies between crates that the design forbids.
//!
//! The compiler already prevents a crate from using what it does not depend on. It cannot notice a
//! dependency line that should not exist, or one that comes in through a third crate. This check
//! finds those in the output of `cargo tree` for a default build on this machine.
//!
//! It also finds the names of protocols in crates that must not know them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::steps::cargo;
use crate::words::{list_sources, parts};

/// The most packages a default build may have. Every one of them is compiled by everyone who clones
/// the project, and trusted by everyone who runs the hub.
const PACKAGES_MAX: usize = 330;

/// A crate, and what it must not depend on, directly or indirectly.
struct Border {
    package: &'static str,
    forbidden: &'static [&'static str],
    why: &'static str,
}

const BORDERS: [Border; 2] = [
    Border {
        package: "rialto-core",
        forbidden: &[
            "tokio",
            "rand",
            "getrandom",
            "chrono",
            "jiff",
            "reqwest",
            "rusqlite",
            "rialto-engine",
            "rialto-protocols",
            "rialto-hub",
            "rialto-client",
        ],
        why: "core only decides: it has no clock, no randomness and no I/O",
    },
    Border {
        package: "rialto-client",
        forbidden: &["rialto-engine", "rialto-hub", "rusqlite"],
        why: "users of the client must not have to compile a store",
    },
];

/// Each folder is a protocol and its name, except what all protocols share.
const PROTOCOLS: &str = "crates/protocols/src";
const SHARED_FOLDERS: [&str; 2] = ["adapter", "kit"];
/// Crates that serve every protocol and know none.
const NEUTRAL_CRATES: [&str; 4] =
    ["crates/config/src", "crates/core/src", "crates/engine/src", "crates/hub/src"];
/// Text that has the name of a protocol and another meaning, and what it is.
const OTHER_MEANINGS: [(&str, &str); 3] = [
    ("prometheus_client::registry::Registry", "a type of another crate"),
    ("text::encode_registry", "a function of another crate"),
    ("tracing_subscriber::registry::LookupSpan", "a trait of another crate"),
];

/// Checks all rules and the size of the build, and prints violations. `true` if there are none.
pub fn check() -> bool {
    let mut sound = check_protocol_names();
    for border in &BORDERS {
        match packages(border.package, "normal") {
            Ok(reached) => {
                let trespassers = trespassers(&reached, border.forbidden);
                for name in &trespassers {
                    println!("{} depends on {name}, but {}", border.package, border.why);
                    println!("  to see why: cargo tree -p {} -e normal -i {name}", border.package);
                }
                sound &= trespassers.is_empty();
            }
            Err(why) => sound = complain(&why),
        }
    }
    match packages("rialto", "normal,build") {
        Ok(all) => {
            println!(
                "the default build of rialto has {} packages (at most {PACKAGES_MAX})",
                all.len()
            );
            sound &= all.len() <= PACKAGES_MAX;
        }
        Err(why) => sound = complain(&why),
    }
    sound
}

/// Prints every line of a neutral crate, outside its tests, that names a protocol. `true` if there
/// is none.
fn check_protocol_names() -> bool {
    let folders = fs::read_dir(PROTOCOLS).into_iter().flatten().flatten().map(|entry| entry.path());
    let names = folders
        .filter(|path| path.is_dir())
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    let protocols: BTreeSet<String> =
        names.filter(|name| !SHARED_FOLDERS.contains(&name.as_str())).collect();
    if protocols.is_empty() {
        return complain(&format!("cannot find the protocols in {PROTOCOLS}"));
    }
    let mut files = Vec::new();
    NEUTRAL_CRATES.iter().for_each(|folder| list_sources(Path::new(folder), &mut files));
    let mut found = 0;
    for file in files.iter().filter(|file| !is_test(file)) {
        let Ok(text) = fs::read_to_string(file) else { continue };
        for (line, name) in protocols_named(&text, &protocols) {
            println!("{}:{line}: names the protocol {name}", file.display());
            found += 1;
        }
    }
    println!("{} files of crates that know no protocol, {found} names of protocols", files.len());
    found == 0
}

/// Whether a whole file is tests.
fn is_test(file: &Path) -> bool {
    let in_tests = file.components().any(|part| part.as_os_str() == "tests");
    in_tests || file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

/// The protocols that a source names before its tests, with their lines.
fn protocols_named(source: &str, protocols: &BTreeSet<String>) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    let mut lines = source.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let opens_module = |next: &&str| next.starts_with("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().map(|(_, next)| next).is_some_and(opens_module) {
            break;
        }
        let line =
            OTHER_MEANINGS.iter().fold(line.to_owned(), |line, (text, _)| line.replace(text, ""));
        let identifiers = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        for part in identifiers.flat_map(parts).filter(|part| protocols.contains(part)) {
            named.push((at + 1, part));
        }
    }
    named
}

fn complain(why: &str) -> bool {
    println!("{why}");
    false
}

/// All packages built for `package`, itself included, as (name, version).
fn packages(package: &str, edges: &str) -> Result<BTreeSet<(String, String)>, String> {
    let output = cargo()
        .args(["tree", "--package", package, "--edges", edges])
        .args(["--prefix", "none", "--format", "{p}"])
        .output()
        .map_err(|error| format!("cannot run cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let packages = read_tree(&String::from_utf8_lossy(&output.stdout));
    // A tree that could not be parsed must not pass as one without violations.
    if !packages.iter().any(|(name, _)| name == package) {
        return Err(format!("cannot find {package} in the output of cargo tree"));
    }
    Ok(packages)
}

/// A package appears in the tree once per user; here it counts once.
fn read_tree(tree: &str) -> BTreeSet<(String, String)> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        })
        .collect()
}

fn trespassers<'a>(reached: &BTreeSet<(String, String)>, forbidden: &[&'a str]) -> Vec<&'a str> {
    let is_reached = |wanted: &str| reached.iter().any(|(name, _)| name == wanted);
    forbidden.iter().copied().filter(|name| is_reached(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
rialto-core v0.1.0 (/somewhere/core)
serde v1.0.229
serde_derive v1.0.229 (proc-macro)
syn v3.0.9
syn v2.0.1
serde v1.0.229 (*)
tokio-util v0.7.0
";

    #[test]
    fn a_package_counts_once_per_version_however_often_it_is_used() {
        assert_eq!(read_tree(TREE).len(), 6);
    }

    #[test]
    fn a_protocol_is_found_by_its_name_in_code_strings_and_paths_but_not_in_tests() {
        let protocols = BTreeSet::from(["relay".to_owned(), "registry".to_owned()]);
        let source = "\
use rialto_protocols::relay::Address;
struct RelayState;
const PATH: &str = \"/registry/agents\";
// 6to4 relays
use prometheus_client::registry::Registry as MetricSet;
#[cfg(test)]
mod fixtures;
fn open_relay() {}
#[cfg(test)]
mod tests {
    const HOME: &str = \"relay\";
}
";
        let named = protocols_named(source, &protocols);
        let lines: Vec<usize> = named.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3, 8]);
    }

    #[test]
    fn no_package_of_ours_has_unsafe_code_or_a_build_script() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |folder: &str| fs::read_to_string(root.join(folder).join("Cargo.toml"));
        let workspace = read("").expect("a manifest");
        assert!(workspace.contains("unsafe_code = \"forbid\""));
        let members = workspace.split_once("members = [").expect("members").1;
        let members = members.split_once(']').expect("an end").0;
        let mut folders: Vec<&str> =
            members.split(',').map(|one| one.trim().trim_matches('"')).collect();
        folders.retain(|one| !one.is_empty());
        assert!(folders.len() > 6, "{folders:?}");
        for folder in folders {
            let manifest = read(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
            assert!(manifest.contains("[lints]\nworkspace = true"), "{folder}");
            assert!(!manifest.contains("\nbuild = "), "{folder}");
            assert!(!root.join(folder).join("build.rs").exists(), "{folder}");
        }
    }

    #[test]
    fn a_trespasser_is_known_by_its_whole_name() {
        let reached = read_tree(TREE);
        assert_eq!(trespassers(&reached, &["tokio", "rand"]), Vec::<&str>::new());
        assert_eq!(trespassers(&reached, &["tokio-util", "rand"]), ["tokio-util"]);
    }
}
