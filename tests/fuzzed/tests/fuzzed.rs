//! Every target over its corpus and some thousand mutations of it.

use std::fs;
use std::path::Path;

use rialto_fuzzed::ALL;
use rialto_fuzzed::drive::{Corpus, Plan, TIME_LIMIT, folder, run};

/// Mutations for each target, before its share. `cargo xtask fuzz` runs millions.
const INPUTS: u64 = 20_000;
/// The same in every run, so that results are the same everywhere.
const SEED: u64 = 20_260_211;
/// Corpus files stay small enough to be read and cloned.
const FILE_MAX: usize = 4 << 10;
const ALL_MAX: usize = 500 << 10;

fn holds(name: &str) {
    let target = ALL.iter().find(|target| target.name == name).expect("a target");
    if let Err(broken) = run(target, Plan { inputs: INPUTS, seed: SEED, time_limit: TIME_LIMIT }) {
        panic!("{broken}");
    }
}

macro_rules! every_target {
    ($($name:ident)+) => {
        $(#[test] fn $name() { holds(stringify!($name)); })+
        const TESTED: &[&str] = &[$(stringify!($name)),+];
    };
}

every_target! {
    a2a_card a2a_parts a2a_rpc agora ans104 base64url clara_item clara_order clara_record convert did_key egress_url encoding headers http
    ijson jcs key log_record money openclaw program query registry relay relay_address resume schema settings sse
    stamp stored_row webhook
}

#[test]
fn every_target_is_tested_here_and_wrapped_for_libfuzzer() {
    let names: Vec<&str> = ALL.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("a manifest");
    for name in names {
        let wrapper = fs::read_to_string(fuzz.join(format!("fuzz_targets/{name}.rs")));
        let wrapper = wrapper.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(wrapper.contains(&format!("targets::{name}(")), "{name} wraps something else");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in the manifest");
    }
}

#[test]
fn what_is_kept_is_small() {
    let mut all = 0;
    for target in ALL {
        for (name, bytes) in Corpus::of(target.name).expect("kept inputs").0 {
            assert!(bytes.len() <= FILE_MAX, "{}/{name} has {} bytes", target.name, bytes.len());
            all += bytes.len();
        }
        assert!(folder(target.name).is_dir());
    }
    assert!(all <= ALL_MAX, "the whole corpus has {all} bytes");
}
