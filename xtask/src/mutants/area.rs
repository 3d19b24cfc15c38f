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
            Self::Ledger => &["crates/core/src/ledger/post.rs", "crates/core/src/ledger/order.rs"],
            Self::Jobs => &[
                "crates/core/src/job/work.rs",
                "crates/core/src/job/end.rs",
                "crates/core/src/job/open.rs",
                "crates/core/src/job/fit.rs",
                "crates/core/src/job/respond.rs",
                "crates/core/src/job/select.rs",
            ],
            Self::Idempotency => &["crates/core/src/memory.rs", "crates/engine/src/run/lane.rs"],
            Self::Authority => &["crates/core/src/agent/enrol.rs", "crates/core/src/agent/key.rs"],
        }
    }

    /// What cargo is told to test.
    pub fn tests(self) -> &'static [&'static str] {
        match self {
            Self::Ledger | Self::Jobs => &["-p", "rialto-core", "--lib"],
            Self::Idempotency | Self::Authority => {
                &["-p", "rialto-core", "-p", "rialto-engine", "-p", "rialto-hub", "--lib"]
            }
        }
    }
}
