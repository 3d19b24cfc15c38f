//! Tests of the driver: the same seed makes the same inputs, and failures are found.

use std::process::Command;
use std::time::Duration;

use rialto_fuzzed::Target;
use rialto_fuzzed::drive::{Dice, Mutator, Plan, TIME_LIMIT, run};

/// A target that uses the corpus of another and fails in some way.
const fn broken(check: fn(&[u8])) -> Target {
    let cost = rialto_fuzzed::ALL[0].cost;
    Target { name: "money", check, words: &["e"], cost }
}

static PANICS: Target = broken(|bytes| assert!(!bytes.contains(&b'e'), "an e"));
static SWELLS: Target = broken(|bytes| {
    if bytes.contains(&b'e') {
        std::hint::black_box(vec![0_u8; 64 << 20]);
    }
});

static SWELLS_ELSEWHERE: Target = {
    let target = broken(|bytes| {
        if bytes.contains(&b'e') {
            let swells = || drop(std::hint::black_box(vec![1_u8; 192 << 20]));
            std::thread::spawn(swells).join().expect("no panic");
        }
    });
    Target { cost: target.cost.elsewhere(), ..target }
};
static LOOPS: Target = broken(|bytes| {
    while std::hint::black_box(bytes).contains(&b'e') {
        std::thread::yield_now();
    }
});

const PLAN: Plan = Plan { inputs: 20_000, seed: 1, time_limit: TIME_LIMIT };

#[test]
fn a_panic_is_found_and_its_input_made_small() {
    let broken = run(&PANICS, PLAN).expect_err("an input with an e");
    assert_eq!(broken.input, b"e");
    assert!(broken.why.contains("an e"), "{broken}");
}

#[test]
fn memory_that_the_input_does_not_account_for_is_found() {
    let broken = run(&SWELLS, PLAN).expect_err("an input with an e");
    assert_eq!(broken.input, b"e");
    assert!(broken.why.contains("held 67108864 bytes"), "{broken}");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_other_threads_hold_is_found_too() {
    let broken = run(&SWELLS_ELSEWHERE, PLAN).expect_err("an input with an e");
    assert!(broken.input.contains(&b'e'), "{broken}");
    assert!(broken.why.contains("the whole process"), "{broken}");
}

#[test]
#[ignore = "never ends; the next test runs it in a separate process"]
fn a_parser_loops() {
    let plan = Plan { time_limit: Duration::from_secs(1), ..PLAN };
    run(&LOOPS, plan).expect("it is ended before that");
}

#[test]
fn a_parser_that_loops_ends_the_run_and_its_input_is_named() {
    let own = std::env::current_exe().expect("this program");
    let asked = ["--exact", "a_parser_loops", "--ignored", "--nocapture"];
    let ended = Command::new(own).args(asked).output().expect("it starts");
    assert!(!ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr);
    let named = said.split("money: took longer than 1s\nwith ").nth(1).expect(&said);
    assert!(named.split_once(" bytes: ").is_some_and(|(_, input)| input.contains('e')), "{said}");
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let made = |seed| {
        let mut dice = Dice::new(seed);
        let mutator = Mutator::new(&["word"]);
        (0..100).map(|_| mutator.made(&mut dice, b"{\"a\":12}", b"[3]")).collect::<Vec<_>>()
    };
    assert_eq!(made(7), made(7));
    assert_ne!(made(7), made(8));
}
