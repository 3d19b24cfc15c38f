//! npm packages that tests run, installed into the target directory once, and kept.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;

/// The directory of an installed package version; one test at a time installs.
pub fn npm_package(name: &str, version: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    let short = name.rsplit('/').next().unwrap_or(name);
    let folder = target.join("foreign").join(format!("{short}-{version}"));
    fs::create_dir_all(&folder).expect("a directory");
    let lock = File::create(target.join("foreign/lock")).expect("a file");
    lock.lock().expect("a lock");
    let complete = folder.join("complete");
    if !complete.exists() {
        install(&folder, name, version);
        fs::write(complete, version).expect("a file");
    }
    folder
}

fn install(folder: &Path, name: &str, version: &str) {
    fs::write(folder.join("package.json"), r#"{"private":true}"#).expect("a file");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"])
        .args(["--fetch-retries=1", "--fetch-timeout=60000"])
        .arg(format!("{name}@{version}"))
        .current_dir(folder);
    let output =
        output(&mut npm).expect("npm starts: this test needs Node.js 20 or later, with npm");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "npm could not install {name} {version} into {}; without it this test cannot say anything. \
         Is there a network?\n{said}",
        folder.display()
    );
}
