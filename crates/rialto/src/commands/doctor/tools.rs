//! Checks for tools that handlers often use. A hub needs none of them.

use std::path::Path;

use super::check::HealthCheck;

const TOOLS: [&str; 2] = ["python3", "node"];

pub fn checks() -> Vec<HealthCheck> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<_> = std::env::split_paths(&path).collect();
    TOOLS.iter().map(|tool| check(tool, &places)).collect()
}

fn check(tool: &str, places: &[impl AsRef<Path>]) -> HealthCheck {
    let file = format!("{tool}{}", std::env::consts::EXE_SUFFIX);
    let found = places.iter().map(|place| place.as_ref().join(&file)).find(|path| path.is_file());
    match found {
        Some(path) => HealthCheck::ok(tool, path.display().to_string()),
        None => HealthCheck::warn(
            tool,
            "not found",
            format!("only handlers written for {tool} need it"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckStatus;
    use super::*;

    #[test]
    fn a_tool_that_is_missing_is_only_a_warning() {
        let place = tempfile::tempdir().expect("a directory");
        assert_eq!(check("thing", &[place.path()]).status, CheckStatus::Warn);
        let file = format!("thing{}", std::env::consts::EXE_SUFFIX);
        std::fs::write(place.path().join(file), "").expect("written");
        assert_eq!(check("thing", &[place.path()]).status, CheckStatus::Ok);
    }
}
