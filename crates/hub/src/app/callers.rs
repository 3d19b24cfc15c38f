//! Who a request is counted under: the principal of its credential, or the signer of its body.

use std::net::SocketAddr;
use std::sync::Arc;

use http::header;
use rialto_protocols::adapter::caller::{Caller, Credential};
use rialto_protocols::adapter::{EdgeError, HubContext, Signer, WriteLimiter};

use crate::edge::{KeyUseLookup, Principal, PrincipalLookup, RateLimits};

/// Finds principals by their keys, and by the read tokens of protocols.
pub fn principals(context: HubContext) -> PrincipalLookup {
    Box::new(move |request| {
        request.headers.get(header::AUTHORIZATION)?;
        match Credential::of(&context.engine, request).caller {
            Ok(Caller::Agent(id) | Caller::FormerAgent(id)) => Some(Principal::Agent(id.0)),
            Ok(Caller::Operator) => Some(Principal::Operator),
            Ok(Caller::Anonymous) => None,
            // Not an agent or operator key, but it may be a read token of a protocol.
            Err(_) => {
                let reader = context.authenticate_reader(&request.headers);
                reader.map(|id| Principal::Agent(id.0))
            }
        }
    })
}

/// Finds the keys of agents, whose limits bind what a request spends.
pub fn key_uses(context: HubContext) -> KeyUseLookup {
    Box::new(move |request| {
        request.headers.get(header::AUTHORIZATION)?;
        Credential::of(&context.engine, request).key_use()
    })
}

/// Write rate limits for callers that are identified by their signature.
pub struct SignerLimits(pub Arc<RateLimits>);

impl WriteLimiter for SignerLimits {
    fn count_write(&self, signer: Signer<'_>) -> Result<(), EdgeError> {
        match signer {
            Signer::Agent(id) => self.0.check_signer(Principal::Agent(id.0)),
            Signer::Unregistered(name) => self.0.check_signer(name),
        }
    }

    fn count_signature_check(&self, from: Option<SocketAddr>) -> Result<(), EdgeError> {
        from.map_or(Ok(()), |from| self.0.check_signature(from.into()))
    }

    fn count_new_sender(&self, from: Option<SocketAddr>) -> Result<(), EdgeError> {
        from.map_or(Ok(()), |from| self.0.check_registration_from(from))
    }
}
