//! The identity an agent shows to its peers.

use rialto_core::alias::Digest;
use url::Origin;
use uuid::{Builder, Uuid};

use crate::agent::{AgentError, StateDir};
use crate::agora::{self, Seed};
use crate::call::{CallError, Hub};
use crate::origin_client::parse_http_url;

/// An agent's identity: its display name, its id, and its signing key.
///
/// All of it follows from the seed: the same seed gives the same agent after a restart.
#[derive(Clone, Debug)]
pub struct PeerIdentity {
    name: String,
    id: Uuid,
    signer: agora::Identity,
    callback_origins: Vec<Origin>,
}

impl PeerIdentity {
    /// An identity from a name and the seed of the key. The id is derived from the key.
    pub fn new(name: impl Into<String>, seed: &Seed) -> Self {
        let signer = agora::Identity::new(seed);
        let digest = Digest::of(&[b"rialto direct agent", signer.did().as_bytes()]);
        let id = Builder::from_random_bytes(digest.0).into_uuid();
        Self { name: name.into(), id, signer, callback_origins: Vec::new() }
    }

    /// The identity stored in a state directory. The agent's own hub may always be called back;
    /// otherwise results that take longer than the hub waits would be lost.
    pub(in crate::agent) fn from_state_dir(
        name: &str,
        state_dir: &StateDir,
        hub: Option<&Hub>,
    ) -> Result<Self, AgentError> {
        let identity = Self::new(name, &state_dir.seed()?);
        Ok(match hub {
            Some(hub) => identity.allow_callback_origin(hub.base())?,
            None => identity,
        })
    }

    /// Sets an id the agent already has elsewhere, such as at a hub.
    pub fn with_id(mut self, id: Uuid) -> Self {
        self.id = id;
        self
    }

    /// Also allows callbacks to this origin, such as `https://hub.example`. By default a result
    /// that was promised for later is sent only to the machine that requested it.
    pub fn allow_callback_origin(mut self, origin: &str) -> Result<Self, CallError> {
        self.callback_origins.push(parse_http_url(origin)?.origin());
        Ok(self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The key that signs its messages.
    pub fn signer(&self) -> &agora::Identity {
        &self.signer
    }

    /// Other origins to which results may be sent.
    pub(crate) fn callback_origins(&self) -> &[Origin] {
        &self.callback_origins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_of_an_agent_may_be_called_back_and_no_other_origin() {
        let dir = tempfile::tempdir().expect("a directory");
        let state_dir = StateDir::open(dir.path()).expect("free");
        let hub = Hub::new("https://hub.example/below/").expect("a client");
        let me = PeerIdentity::from_state_dir("a", &state_dir, Some(&hub)).expect("an identity");
        let origin = url::Url::parse("https://hub.example").expect("a URL").origin();
        assert_eq!(me.callback_origins(), [origin]);
        let alone = PeerIdentity::from_state_dir("a", &state_dir, None).expect("an identity");
        assert_eq!((alone.callback_origins().len(), alone.id()), (0, me.id()));
    }

    #[test]
    fn one_seed_is_one_agent() {
        let of = |byte| PeerIdentity::new("a", &Seed::from_bytes([byte; 32]));
        assert_eq!(of(1).id(), of(1).id());
        assert_ne!(of(1).id(), of(2).id());
        assert_eq!(of(1).id().get_version_num(), 4);
        assert_eq!(of(1).with_id(Uuid::from_u128(7)).id(), Uuid::from_u128(7));
        assert!(of(1).allow_callback_origin("hub.example").is_err());
        assert_eq!(
            of(1)
                .allow_callback_origin("https://hub.example/x")
                .expect("an origin")
                .callback_origins()
                .len(),
            1
        );
    }
}
