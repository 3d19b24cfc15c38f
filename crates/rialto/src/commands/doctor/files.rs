//! Checks the files of the command line: they exist, are readable, and only their owner can read
//! them.

use std::path::Path;

use super::super::context::{Context, Home};
use super::super::hub_options::HubOptions;
use super::check::HealthCheck;

pub fn checks(access: &HubOptions) -> Vec<HealthCheck> {
    let context = access.context();
    let mut checks = vec![home(context.as_ref().ok())];
    checks.push(match context {
        Err(error) => HealthCheck::from_error("context", error),
        Ok(context) if !context.is_saved() => {
            let what = format!("{}, created when something is saved in it", context.name());
            HealthCheck::ok("context", what)
        }
        Ok(context) => {
            HealthCheck::ok("context", format!("{} at {}", context.name(), context.hub()))
        }
    });
    checks
}

fn home(context: Option<&Context>) -> HealthCheck {
    let Some(home) = Home::find() else {
        let what = "there is no home directory, so no key can be saved";
        return HealthCheck::warn("home", what, "set RIALTO_HOME");
    };
    let path = home.path();
    if !path.exists() {
        return HealthCheck::ok(
            "home",
            format!("{}, created when something is saved", path.display()),
        );
    }
    if !path.is_dir() {
        let what = format!("{} is not a directory, so no key can be saved", path.display());
        return HealthCheck::fail("home", what, "set RIALTO_HOME to a directory");
    }
    let shown = path.display();
    let key = context.and_then(Context::key_path).filter(|path| path.exists());
    if let Some(key) = key.filter(|key| is_open(key)) {
        let key = key.display();
        let what = format!("other users can read {key}");
        return HealthCheck::fail(
            "home",
            what,
            format!("`chmod 600 {key}`, and `rialto agent rekey`"),
        );
    }
    if !is_open(path) {
        return HealthCheck::ok("home", format!("{shown}, readable by you only"));
    }
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
    match inside.map(|entry| entry.path()).find(|inside| is_open(inside)) {
        Some(inside) => {
            let what = format!("other users can read {}", inside.display());
            HealthCheck::fail(
                "home",
                what,
                format!("`chmod -R go= {shown}`, and `rialto agent rekey`"),
            )
        }
        None => {
            let what = format!("other users can list {shown}, but not read its files");
            HealthCheck::warn("home", what, format!("`chmod 700 {shown}`"))
        }
    }
}

/// Whether users other than the owner have any access.
#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}
