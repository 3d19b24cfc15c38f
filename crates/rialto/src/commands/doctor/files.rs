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
    let key = context.and_then(Context::me_path).filter(|path| path.exists());
    let files = [(Some(path.to_owned()), "700"), (key, "600")];
    let mut files = files.into_iter().filter_map(|(path, mode)| Some((path?, mode)));
    let open = files.find(|(path, _)| is_open(path));
    match open {
        None => Check::ok("home", format!("{}, yours alone", path.display())),
        Some((path, mode)) => {
            let path = path.display();
            let what = format!("others can look into {path}");
            Check::fail("home", what, format!("`chmod {mode} {path}`, and `rialto agent rekey`"))
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
