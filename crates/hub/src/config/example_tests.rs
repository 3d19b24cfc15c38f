//! Compares `rialto.example.toml` with the schema.

use std::path::PathBuf;

use super::{LoadedConfig, Profile};

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../rialto.example.toml"))
}

fn defaults() -> LoadedConfig {
    LoadedConfig::from_layers(Profile::Serve, None, std::iter::empty(), &[])
        .expect("defaults are valid")
}

/// Every key of the example in order, and whether it is commented out.
fn keys_in_the_example() -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(path()).expect("the example is in the repository");
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
        }
        let (line, commented) = match line.strip_prefix("# ") {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if let Some((name, _)) = line.split_once(" = ").filter(|(name, _)| is_name(name)) {
            keys.push((format!("{section}.{name}"), commented));
        }
    }
    keys
}

#[test]
fn the_example_is_exactly_the_defaults_of_serve() {
    let example = LoadedConfig::load(Profile::Serve, Some(&path()), std::iter::empty(), &[]);
    assert_eq!(example.map(|loaded| loaded.config), Ok(defaults().config));
}

#[test]
fn the_example_has_every_key_in_order_and_comments_out_only_the_unset() {
    let keys =
        defaults().settings().iter().map(|r| (r.key.to_owned(), r.value == "unset")).collect();
    let keys: Vec<(String, bool)> = keys;
    assert_eq!(keys_in_the_example(), keys);
}

#[test]
fn the_commented_examples_work_when_uncommented() {
    let text = std::fs::read_to_string(path()).expect("the example is in the repository");
    for (key, _) in keys_in_the_example().iter().filter(|(_, commented)| *commented) {
        let name = key.split_once('.').map_or("", |(_, name)| name);
        let comment = format!("# {name} = \"");
        let line = text.lines().find_map(|line| line.strip_prefix(&comment)).unwrap_or_default();
        let flags = [(key.as_str(), line.trim_end_matches('"').to_owned())];
        let loaded = LoadedConfig::from_layers(Profile::Serve, None, std::iter::empty(), &flags);
        let shown = loaded.expect("the example is valid");
        assert!(shown.settings().iter().any(|row| row.key == key && row.value != "unset"), "{key}");
    }
}

#[test]
fn every_setting_has_a_comment_of_its_own() {
    let text = std::fs::read_to_string(path()).expect("the example is in the repository");
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        let sets = pair[1].contains(" = ") && !pair[1].starts_with('#');
        assert!(!sets || pair[0].starts_with("# "), "{}", pair[1]);
    }
}
