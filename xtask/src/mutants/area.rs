//! The areas where a mistake would cost somebody something.

/// Some files and the tests that guard them.
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
                "crates/core/src/ledger/order.rs",
            ],
            Self::Jobs => &[
                "crates/core/src/job/ask.rs",
                "crates/core/src/job/bargain.rs",
                "crates/core/src/job/end.rs",
                "crates/core/src/job/fit.rs",
                "crates/core/src/job/mod.rs",
                "crates/core/src/job/offer.rs",
                "crates/core/src/job/open.rs",
                "crates/core/src/job/reply.rs",
                "crates/core/src/job/respond.rs",
                "crates/core/src/job/select.rs",
                "crates/core/src/job/work.rs",
            ],
            Self::Idempotency => &[
                "crates/core/src/memory.rs",
                "crates/engine/src/run/lane.rs",
                "crates/protocols/src/face/once.rs",
            ],
            Self::Authority => &[
                "crates/core/src/agent/enrol.rs",
                "crates/core/src/agent/key.rs",
                "crates/protocols/src/face/caller.rs",
                "crates/hub/src/v1/gate.rs",
                "crates/hub/src/v1/proof.rs",
            ],
        }
    }

    /// What cargo is told to test, one line after the other until one of them notices: what takes
    /// a moment first, then all that has to do with the area.
    pub fn tests(self) -> &'static [&'static str] {
        const QUICK: &str =
            "-p rialto-core --lib -- --skip random_ --skip whatever_is_asked --skip world::";
        const CORE: &str = "-p rialto-core --lib";
        const ENGINE: &str = "-p rialto-engine --lib";
        const HUB: &str = "-p rialto-hub --lib";
        match self {
            Self::Ledger | Self::Jobs => &[QUICK, CORE, ENGINE, HUB, "-p rialto-sim --test sim"],
            Self::Idempotency => {
                &[QUICK, CORE, ENGINE, HUB, "-p rialto --test it -- once:: repeats::"]
            }
            Self::Authority => &[QUICK, CORE, HUB, "-p rialto --test it -- authority:: keys::"],
        }
    }
}
