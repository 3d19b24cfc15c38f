//! How recent the state of a node among several is when it answers.
//!
//! Every node follows one log. A strict operation waits until the node has everything that was
//! committed before the request, so a client can write at one node and read at another. A node that
//! has not looked at the log lately answers nothing about the hub.

use std::future::Future;

use axum::body::Body;
use http::request::Parts;
use http::{Response, header};
use rialto_engine::Engine;
use rialto_protocols::adapter::caller::Credential;
use rialto_protocols::adapter::{EdgeError, Freshness, RateClass};

use super::dispatcher::{Dispatcher, error_response};
use super::operation_table::{ErrorFormat, RequestClass};
use super::rate_limits::CallerIdentity;

impl Dispatcher {
    /// The identity a request is counted under, looked up in a state that is recent enough for the
    /// request: a key that another node made a moment ago is valid here.
    pub(super) async fn identify_caller_at_node(
        &self,
        node: &Engine,
        request: &mut Parts,
        class: RequestClass,
    ) -> Result<CallerIdentity, EdgeError> {
        if class.freshness == Freshness::Any {
            return Ok(self.identify_caller(request, class.rate));
        }
        if !node.is_current() {
            return Err(EdgeError::NotCurrent);
        }
        if class.freshness == Freshness::Strict {
            // The writer decides writes on a state that nothing is missing from. If it is not the
            // writer any more, it cannot commit them either.
            if !(is_write(class) && node.is_writer()) {
                catch_up(node).await?;
            }
            return Ok(self.identify_caller(request, class.rate));
        }
        let caller = self.identify_caller(request, class.rate);
        if caller.principal.is_some() || !request.headers.contains_key(header::AUTHORIZATION) {
            return Ok(caller);
        }
        // The key may be newer than what this node has.
        catch_up(node).await?;
        request.extensions.remove::<Credential>();
        Ok(self.identify_caller(request, class.rate))
    }

    /// A refusal of a write, confirmed. A node that writes refuses by what it knows, without looking
    /// at the log; if another node has taken over meanwhile, what was refused may be possible.
    pub(super) async fn confirm_refusal(
        &self,
        class: RequestClass,
        errors: ErrorFormat<'_>,
        epoch: Option<u64>,
        response: Response<Body>,
    ) -> Response<Body> {
        let Some(node) = &self.node else { return response };
        let is_decided_here = is_write(class) && class.freshness == Freshness::Strict;
        let is_refused = is_decided_here && response.status().is_client_error();
        if is_refused && !node.still_writes(epoch).await {
            return error_response(errors, EdgeError::NotCurrent);
        }
        response
    }

    /// The answer of an operation. A read that still waits when the node ceases to be current ends
    /// with an error; what may write goes on, because it may be committed already.
    pub(super) async fn answer_while_current(
        &self,
        class: RequestClass,
        errors: ErrorFormat<'_>,
        answer: impl Future<Output = Response<Body>>,
    ) -> Response<Body> {
        let only_reads = class.rate == Some(RateClass::Read) && !class.reads_too;
        let may_end = class.freshness != Freshness::Any && only_reads;
        let Some(node) = self.node.as_ref().filter(|_| may_end) else { return answer.await };
        tokio::select! {
            biased;
            answer = answer => answer,
            () = node.until_stale() => error_response(errors, EdgeError::NotCurrent),
        }
    }
}

fn is_write(class: RequestClass) -> bool {
    class.rate.is_some_and(|rate| rate != RateClass::Read)
}

async fn catch_up(node: &Engine) -> Result<(), EdgeError> {
    node.fresh().await.map_err(|_| EdgeError::NotCurrent)
}
