//! The driver itself: the same seed makes the same inputs, and what is broken is found.

use rialto_fuzzed::Target;
use rialto_fuzzed::drive::{Dice, Mutator, Plan, run};

/// A target that borrows the inputs of another and breaks in some way.
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

const PLAN: Plan = Plan { inputs: 20_000, seed: 1 };

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
