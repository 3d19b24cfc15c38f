//! For tests: mistakes that a test plants, to show that it would notice them.

use std::sync::OnceLock;

/// Environment variable that plants a mistake in a whole process.
const VARIABLE: &str = "RIALTO_TEST_MISTAKE";

/// A rule of the cluster that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A place of the log can be written twice.
    NoKey,
    /// Commands are sent again as soon as there is a connection to a new writer.
    AskBeforeFirstBatch,
    /// The writer decides a command as often as it is sent.
    NoDedupe,
    /// A reply without a record is sent although another node may have written.
    NoConfirmation,
    /// A reply of the writer is passed on although its batch is not applied yet.
    ReplyBeforeBatch,
}

impl Mistake {
    /// The mistake that is planted in this process.
    pub fn of_process() -> Option<Self> {
        static PLANTED: OnceLock<Option<Mistake>> = OnceLock::new();
        *PLANTED.get_or_init(|| match std::env::var(VARIABLE).ok()?.as_str() {
            "resend-early" => Some(Self::AskBeforeFirstBatch),
            "no-dedupe" => Some(Self::NoDedupe),
            "unconfirmed-refusal" => Some(Self::NoConfirmation),
            "early-answer" => Some(Self::ReplyBeforeBatch),
            _ => None,
        })
    }
}
