//! The areas of the code where a bug would do harm.

/// The layer of each crate: each depends on those before it.
const LAYERS: [&str; 4] = ["crates/core/", "crates/engine/", "crates/protocols/", "crates/hub/"];

/// Which tests are run to detect a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Tests of its crate that take a second; whether other tests detect it is not known then.
    Quick,
    /// The tests of the crate it is in.
    Own,
    /// The tests of single crates.
    Near,
    All,
}

/// One set of tests, as arguments for cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tests {
    pub line: &'static str,
    /// The tests of one crate alone, which build and run quickly.
    pub is_near: bool,
    /// The index in [`LAYERS`] of what is tested, or one above all of them.
    layer: usize,
}

impl Tests {
    pub const fn near(layer: usize, line: &'static str) -> Self {
        Self { line, is_near: true, layer }
    }

    /// Whether slow tests are excluded, or there are none.
    fn is_quick(&self) -> bool {
        self.is_near && (self.layer > 0 || self.line.contains("--skip"))
    }

    pub const fn far(layer: usize, line: &'static str) -> Self {
        Self { line, is_near: false, layer }
    }
}

/// Some files and the tests that cover them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    Ledger,
    Jobs,
    Idempotency,
    Authority,
}

impl Area {
    pub const ALL: [Self; 4] = [Self::Ledger, Self::Jobs, Self::Idempotency, Self::Authority];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Jobs => "jobs",
            Self::Idempotency => "idempotency",
            Self::Authority => "authority",
        }
    }

    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Ledger => &[
                "crates/core/src/ledger/mod.rs",
                "crates/core/src/ledger/post.rs",
                "crates/core/src/ledger/accounts.rs",
            ],
            Self::Jobs => &[
                "crates/core/src/job/request.rs",
                "crates/core/src/job/price_agreement.rs",
                "crates/core/src/job/end.rs",
                "crates/core/src/job/readiness.rs",
                "crates/core/src/job/mod.rs",
                "crates/core/src/job/offer.rs",
                "crates/core/src/job/open.rs",
                "crates/core/src/job/abandon.rs",
                "crates/core/src/job/policy.rs",
                "crates/core/src/job/progress.rs",
                "crates/core/src/job/question.rs",
                "crates/core/src/job/acceptance.rs",
                "crates/core/src/job/select.rs",
                "crates/core/src/job/work.rs",
            ],
            Self::Idempotency => &[
                "crates/core/src/idempotency.rs",
                "crates/engine/src/run/lane.rs",
                "crates/protocols/src/adapter/idempotency.rs",
            ],
            Self::Authority => &[
                "crates/core/src/agent/registration.rs",
                "crates/core/src/agent/key.rs",
                "crates/protocols/src/adapter/caller.rs",
                "crates/hub/src/v1/api.rs",
                "crates/hub/src/v1/auth.rs",
            ],
        }
    }

    /// The tests to run for a mutant in a file, in order, until one detects it: quick ones first,
    /// then all that cover the area. Tests of layers below the file's own crate cannot detect it
    /// and are skipped.
    pub fn tests(self, file: &str, reach: Reach) -> Vec<Tests> {
        let own = LAYERS.iter().position(|layer| file.starts_with(layer)).unwrap_or(0);
        let asked = |tests: &Tests| match reach {
            Reach::Quick => tests.layer == own && tests.is_quick(),
            Reach::Own => tests.layer == own && tests.is_near,
            Reach::Near => tests.layer >= own && tests.is_near,
            Reach::All => tests.layer >= own,
        };
        self.all_tests().iter().copied().filter(asked).collect()
    }

    fn all_tests(self) -> &'static [Tests] {
        const QUICK: Tests = Tests::near(
            0,
            "-p rialto-core --lib -- --skip random_ --skip whatever_is_asked --skip world::",
        );
        const CORE: Tests = Tests::near(0, "-p rialto-core --lib");
        const ENGINE: Tests = Tests::near(1, "-p rialto-engine --lib");
        const PROTOCOLS: Tests = Tests::near(2, "-p rialto-protocols --lib");
        const HUB: Tests = Tests::near(3, "-p rialto-hub --lib");
        const SIM: Tests = Tests::far(1, "-p rialto-sim --test sim");
        const REPEATS: Tests = Tests::far(4, "-p rialto --test it -- once:: repeats::");
        const TABLES: Tests = Tests::far(4, "-p rialto --test it -- authority:: keys::");
        match self {
            Self::Ledger | Self::Jobs => &[QUICK, CORE, ENGINE, HUB, SIM],
            Self::Idempotency => &[QUICK, CORE, ENGINE, PROTOCOLS, HUB, REPEATS],
            Self::Authority => &[QUICK, CORE, PROTOCOLS, HUB, TABLES],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_shown_to_its_own_crate_and_what_is_built_on_it() {
        let asked = |area: Area, file| {
            area.tests(file, Reach::All).iter().map(|t| t.line).collect::<Vec<_>>()
        };
        let all = Area::Idempotency.all_tests().len();
        assert_eq!(asked(Area::Idempotency, "crates/core/src/idempotency.rs").len(), all);
        let above = asked(Area::Idempotency, "crates/protocols/src/adapter/idempotency.rs");
        assert_eq!(above[0], "-p rialto-protocols --lib");
        assert_eq!(above.len(), 3);
        assert_eq!(Area::Jobs.tests("crates/core/src/job/end.rs", Reach::Quick).len(), 1);
        let own = Area::Jobs.tests("crates/core/src/job/end.rs", Reach::Own);
        assert!(own.iter().all(|tests| tests.line.contains("rialto-core")) && own.len() == 2);
        for area in Area::ALL {
            let lost =
                area.files().iter().filter(|file| !std::path::Path::new("..").join(file).exists());
            assert_eq!(lost.count(), 0, "{} lists files that do not exist", area.name());
        }
    }
}
