//! The key under which this agent stores a peer's request.
//!
//! Each requester chooses its own ids, so two requesters may choose the same one, or one that a hub
//! uses for a job. Persistent programs and job records identify a job by its id alone. So the id is
//! derived here, where no requester can choose it.

use rialto_core::alias::Digest;
use uuid::{Builder, Uuid};

/// The key of a request: its protocol, its sender, and the sender's id for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey(pub(crate) Digest);

impl RequestKey {
    pub(crate) fn new(protocol: &str, requester: &str, id: &str) -> Self {
        let parts = ["rialto direct job", protocol, requester, id].map(str::as_bytes);
        Self(Digest::of(&parts))
    }

    /// The id of the job on this agent.
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
        let of = |protocol, requester| RequestKey::new(protocol, requester, id).job_id();
        assert_eq!(of("agora", "a"), of("agora", "a"));
        assert_ne!(of("agora", "a"), of("agora", "b"));
        assert_ne!(of("agora", "a"), of("registry", "a"));
        assert_ne!(of("agora", "a").to_string(), id);
    }
}
