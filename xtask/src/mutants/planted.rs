//! Mistakes in durability, planted one at a time: each must be noticed by the tests named beside it.
//!
//! Unlike other mutants they are not found by a pattern. Each is a mistake that someone could make
//! while working on the log, and that loses acknowledged batches only in a crash.

use super::area::Tests;

/// One mistake.
pub struct PlantedMistake {
    pub name: &'static str,
    pub file: &'static str,
    /// Occurs once in the file.
    pub before: &'static str,
    pub after: &'static str,
    pub tests: Tests,
}

const LOG: Tests = Tests::near(1, "-p rialto-engine --lib -- store::");
const BOUNDARIES: Tests = Tests::far(4, "-p rialto --test it -- faults::boundaries::");

pub const MISTAKES: [PlantedMistake; 5] = [
    PlantedMistake {
        name: "a batch is answered before it is synced",
        file: "crates/engine/src/store/log/mod.rs",
        before: "self.files[self.current].sync_data()",
        after: "Ok::<(), std::io::Error>(())",
        tests: BOUNDARIES,
    },
    PlantedMistake {
        name: "a start skips the batches after the checkpoint",
        file: "crates/engine/src/store/sqlite/mod.rs",
        before: "std::mem::take(&mut self.tail)",
        after: "{ self.tail.clear(); Vec::new() }",
        tests: LOG,
    },
    PlantedMistake {
        name: "the place of a checkpoint is committed before its rows",
        file: "crates/engine/src/store/sqlite/checkpoint.rs",
        before: "        let overflow = in_transaction(db, || {\n",
        after: "        in_transaction(db, || write_state(db, PLACE_STATE, &generation.place))?;\n        \
                let overflow = in_transaction(db, || {\n",
        tests: BOUNDARIES,
    },
    PlantedMistake {
        name: "a file of the log is used again before the checkpoint",
        file: "crates/engine/src/store/log/mod.rs",
        before: "let is_free = self.newest[other] <= self.checkpointed.load(Ordering::Acquire);",
        after: "let is_free = true;",
        tests: LOG,
    },
    PlantedMistake {
        name: "a checkpoint does not move its place",
        file: "crates/engine/src/store/sqlite/checkpoint.rs",
        before: "    write_state(db, PLACE_STATE, &place)\n}",
        after: "    Ok(())\n}",
        tests: LOG,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_mistake_still_has_its_place_in_the_code() {
        for mistake in &MISTAKES {
            let path = std::path::Path::new("..").join(mistake.file);
            let text = std::fs::read_to_string(&path).expect("a file");
            assert_eq!(text.matches(mistake.before).count(), 1, "{}", mistake.name);
        }
    }
}
