//! What a peer's order is called here.
//!
//! Protocols let every requester choose its own ids, so two of them may choose alike, and either may
//! choose what a hub calls a job of its own. A program that stays, and the record of a run, know a job
//! by its id alone: so it has to be one that nobody can choose.

use rialto_core::alias::Digest;
use uuid::{Builder, Uuid};

/// What an order is known by: the protocol it came by, who sent it, and what that one calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope(pub(crate) Digest);

impl Scope {
    pub(crate) fn of(protocol: &str, requester: &str, id: &str) -> Self {
        let parts = ["rialto direct job", protocol, requester, id].map(str::as_bytes);
        Self(Digest::of(&parts))
    }

    /// The id of the job here.
    pub(crate) fn job_id(self) -> Uuid {
        let Digest(bytes) = self.0;
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_chooses_the_same_id_has_another_job() {
        let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        let of = |protocol, requester| Scope::of(protocol, requester, id).job_id();
        assert_eq!(of("agora", "a"), of("agora", "a"));
        assert_ne!(of("agora", "a"), of("agora", "b"));
        assert_ne!(of("agora", "a"), of("registry", "a"));
        assert_ne!(of("agora", "a").to_string(), id);
    }
}
