//! The files of the command line: that they are there, readable, and their owner's alone.

use std::path::Path;

use super::super::access::Access;
use super::super::context::{Context, Home};
use super::check::Check;

pub fn checks(access: &Access) -> Vec<Check> {
    let context = access.context();
    let mut checks = vec![home(context.as_ref().ok())];
    checks.push(match context {
        Err(trouble) => Check::trouble("context", trouble),
        Ok(context) if !context.is_kept() => {
            let what = format!("{}, made when something is kept in it", context.name());
            Check::ok("context", what)
        }
        Ok(context) => Check::ok("context", format!("{} at {}", context.name(), context.hub())),
    });
    checks
}

fn home(context: Option<&Context>) -> Check {
    let Some(home) = Home::find() else {
        let what = "there is no home directory, so no key can be kept";
        return Check::warn("home", what, "name one with RIALTO_HOME");
    };
    let path = home.path();
    if !path.exists() {
        return Check::ok("home", format!("{}, made when something is kept", path.display()));
    }
    if !path.is_dir() {
        let what = format!("{} is no directory, so no key can be kept", path.display());
        return Check::fail("home", what, "name a directory with RIALTO_HOME");
    }
    let shown = path.display();
    let key = context.and_then(Context::me_path).filter(|path| path.exists());
    if let Some(key) = key.filter(|key| is_open(key)) {
        let key = key.display();
        let what = format!("others can read {key}");
        return Check::fail("home", what, format!("`chmod 600 {key}`, and `rialto agent rekey`"));
    }
    if !is_open(path) {
        return Check::ok("home", format!("{shown}, readable by you only"));
    }
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
    match inside.map(|entry| entry.path()).find(|inside| is_open(inside)) {
        Some(inside) => {
            let what = format!("other users can read {}", inside.display());
            Check::fail("home", what, format!("`chmod -R go= {shown}`, and `rialto agent rekey`"))
        }
        None => {
            let what = format!("others can list {shown}, though nothing in it is open to them");
            Check::warn("home", what, format!("`chmod 700 {shown}`"))
        }
    }
}

/// Whether anybody but its owner may do anything with it.
#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}
