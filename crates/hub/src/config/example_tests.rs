//! Compares `rialto.example.toml` with the schema.

use std::path::PathBuf;

use super::{EXAMPLE, LoadedConfig, Profile, example_keys};

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../rialto.example.toml"))
}

fn defaults() -> LoadedConfig {
    LoadedConfig::from_layers(Profile::Serve, None, std::iter::empty(), &[])
        .expect("defaults are valid")
}

#[test]
fn the_example_is_exactly_the_defaults_of_serve() {
    let example = LoadedConfig::load(Profile::Serve, Some(&path()), std::iter::empty(), &[]);
    let example = example.expect("the example is valid").config;
    assert_eq!(format!("{example:?}"), format!("{:?}", defaults().config));
}

#[test]
fn the_example_has_every_key_in_order_and_comments_out_only_the_unset() {
    let keys =
        defaults().settings().iter().map(|r| (r.key.to_owned(), r.value == "unset")).collect();
    let keys: Vec<(String, bool)> = keys;
    assert_eq!(example_keys().collect::<Vec<_>>(), keys);
}

#[test]
fn the_commented_examples_work_when_uncommented() {
    for (key, _) in example_keys().filter(|(_, commented)| *commented) {
        let name = key.split_once('.').map_or("", |(_, name)| name);
        let comment = format!("# {name} = \"");
        let line = EXAMPLE.lines().find_map(|line| line.strip_prefix(&comment)).unwrap_or_default();
        let flags = [(key.as_str(), line.trim_end_matches('"').to_owned())];
        let loaded = LoadedConfig::from_layers(Profile::Serve, None, std::iter::empty(), &flags);
        let shown = loaded.expect("the example is valid");
        assert!(shown.settings().iter().any(|row| row.key == key && row.value != "unset"), "{key}");
    }
}

#[test]
fn every_setting_has_a_comment_of_its_own() {
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    for pair in lines.windows(2) {
        let sets = pair[1].contains(" = ") && !pair[1].starts_with('#');
        assert!(!sets || pair[0].starts_with("# "), "{}", pair[1]);
    }
}
