//! Processing of an envelope: read, verify, rate-limit, address, act (R73).

use std::net::SocketAddr;

use rialto_core::alias::claim;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRequest, RequestTarget, UnfitAgent};
use rialto_core::envelope::{Envelope as CommandEnvelope, Signature};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State, request};
use rialto_core::refusal::Refusal;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::AgoraContext;
use super::auth::{InboxToken, TOKEN_LIFETIME};
use super::hub_envelope::sign_now;
use super::translate::{self, ProvenEnvelope, foreign_id, request_state};
use super::wire::envelope::{Envelope, MessageType, read_json};
use super::wire::error::{Code, Failure};
use super::wire::hello::{Hello, Welcome};
use super::wire::payload::{ErrorPayload, Payload};
use super::wire::status::MessageStatus;
use super::{ID, errors};
use crate::adapter::input_check::{self, InputCheck};
use crate::adapter::{EdgeError, Signer};
use crate::kit::ed25519::PublicKey;

/// An accepted envelope, and the answer to it.
pub struct AcceptedEnvelope {
    pub sender: AgentId,
    pub key: PublicKey,
    /// The signed answer.
    pub text: String,
    pub status: u16,
    /// The request it is about, by the id that its sender uses.
    pub request_id: Option<String>,
    /// The hub's id of the job that it opened.
    pub job: Option<Uuid>,
    /// Whether another agent may answer it.
    pub expects_answer: bool,
    pub repeated: bool,
    /// Whether it was a HELLO signed for this hub.
    pub hello_to_hub: bool,
    /// The newest position in the sender's inbox before the envelope was executed.
    pub inbox_head: u64,
}

/// Where an envelope came from, and what that requires.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvelopeSource {
    /// The agent that the path names.
    pub path_agent: Option<PublicKey>,
    /// The key that owns the connection.
    pub connection_key: Option<PublicKey>,
    /// The network address of the sender.
    pub peer: Option<SocketAddr>,
    /// Whether it opens a connection and must therefore be a new HELLO signed for this hub.
    pub must_be_hello: bool,
}

/// A destination that is named by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// This hub, by the signed `recipient`.
    Hub,
    /// This hub, by the URL alone.
    HubByPath,
    Agent(AgentId),
}

/// Why an envelope was not accepted, and its sender's key if that was proven.
pub struct EnvelopeError {
    pub failure: Box<Failure>,
    pub to: Option<PublicKey>,
}

impl From<Failure> for EnvelopeError {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure), to: None }
    }
}

/// What the hub knows about the parties of an envelope before it is executed, from one read of the
/// world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parties {
    /// The agent with the sender's key, active or not.
    pub sender: Option<AgentId>,
    /// Whether that agent belongs to another protocol, so that the hub signs with its key.
    is_sender_bridged: bool,
    /// The newest position in the sender's inbox.
    inbox_head: u64,
    /// The active agent with the recipient's key.
    pub recipient: Option<AgentId>,
}

impl Parties {
    fn find(context: &AgoraContext, envelope: &Envelope<'_>, source: &EnvelopeSource) -> Self {
        let recipient = source.path_agent.or(envelope.recipient).map(|key| key.did());
        context.engine.with_world(|world| {
            let sender = world.agent_by_alias(ID, &envelope.sender_did);
            let agent = sender.and_then(|id| world.agent(id));
            let recipient = recipient.and_then(|did| world.agent_by_alias(ID, &did));
            Self {
                sender,
                is_sender_bridged: agent.is_some_and(|agent| agent.home != ID),
                inbox_head: sender.map_or(0, |id| world.inbox(id).head),
                recipient: recipient.filter(|id| world.agent(*id).is_some_and(|to| to.active)),
            }
        })
    }
}

/// Accepts an envelope, or returns why not.
pub async fn accept_envelope(
    context: &AgoraContext,
    bytes: &[u8],
    source: EnvelopeSource,
) -> Result<AcceptedEnvelope, EnvelopeError> {
    let json = read_json(bytes)?;
    let envelope = Envelope::read(&json)?;
    let about = |failure: Failure| concerning(failure, &envelope);
    let payload = Payload::read(&envelope).map_err(about)?;
    let received_at = context.engine.wall_time();
    let proof = context.state.prove(&envelope, received_at).map_err(about)?;
    let parties = Parties::find(context, &envelope, &source);
    let proven =
        ProvenEnvelope { envelope: &envelope, proof, received_at, payload, source, parties };
    let result = act(context, proven).await;
    result.map_err(|failure| EnvelopeError { to: Some(proof.key), ..about(failure).into() })
}

/// Executes a proven envelope.
async fn act(
    context: &AgoraContext,
    proven: ProvenEnvelope<'_>,
) -> Result<AcceptedEnvelope, Failure> {
    let (source, proof, parties) = (proven.source, proven.proof, proven.parties);
    if source.connection_key.is_some_and(|from| from != proof.key) {
        return Err(Failure::unauthorized("this connection belongs to another key"));
    }
    let hub = context.state.signer.key();
    // Envelopes that the hub signed were for other parties and cannot be sent back to it (R24,
    // R70).
    if proof.key == hub || parties.is_sender_bridged {
        return Err(Failure::unauthorized(
            "this key is held by the hub and cannot send envelopes to it",
        ));
    }
    if proven.envelope.hub.is_some_and(|named| named != hub) {
        let text = "this envelope is signed for another hub: recipient.hub is not this one's key";
        return Err(Failure::unauthorized(text).with_hint("GET /agora shows the hub's did:key"));
    }
    let is_greeting = proven.envelope.message_type == MessageType::Hello
        && proven.envelope.recipient == Some(hub);
    if source.must_be_hello && !is_greeting {
        return Err(hello_required());
    }
    // Only envelopes that the hub signs for others have this mark (R70).
    if proven.envelope.bridge.is_some() {
        return Err(Failure::bad_field("/bridge", "is reserved for the hub; remove it"));
    }
    let signer = parties.sender.map_or(Signer::Unregistered(proof.key.as_bytes()), Signer::Agent);
    let limited = context.write_limiter.count_write(signer).err();
    let hello = hello(context, &proven)?;
    let uuid = context.engine.random().new_uuid();
    let signature = translate::signature(context, &proven);
    let mut command = signed_command(context, &proven, hello.as_ref(), uuid);
    if let Ok(Command::RequestJob(order)) = &mut command {
        order.unfit_agents = find_unfit(context, order).await;
    }
    // A new sender counts as a registration from its network address.
    let limited = limited.or_else(|| {
        let new_agent = signature.registration.as_ref();
        new_agent.and_then(|_| context.write_limiter.count_new_sender(source.peer).err())
    });
    if let Some(error) = limited {
        command = Err(too_often(context, &proven, error));
    }
    // An envelope that was sent before gets its earlier answer or refusal first (R73).
    let was_sent =
        (command.is_err() || source.must_be_hello) && was_sent(context, &signature).await;
    // A HELLO that another party may have seen does not open a connection (R69).
    if source.must_be_hello && was_sent {
        return Err(hello_required());
    }
    let command = match command {
        Err(_) if was_sent => Command::RecordOnly,
        command => command?,
    };
    let ran = context.engine.run(CommandEnvelope::signed(signature, command)).await;
    let answer = ran.map_err(|failure| errors::from_engine(&failure))?;
    let Answer::SignedOrder { by, job, state, repeated } = answer else {
        return Err(errors::from_engine(&EngineFailure::Fault));
    };
    if parties.sender.is_none() {
        // The first envelope also counts against the limit of the agent that was just registered.
        let _ = context.write_limiter.count_write(Signer::Agent(by));
    }
    context.engine.record_seen(by);
    let answer = SignedOrderAnswer { by, job, state, repeated, uuid };
    match hello {
        Some(hello) => Ok(welcome(context, &proven, &hello, answer)),
        None => accepted(context, &proven, answer).await,
    }
}

/// The error for a first frame that does not open a connection.
pub fn hello_required() -> Failure {
    let text = "the first frame must be a new HELLO whose signed recipient is the hub";
    Failure::unauthorized(text).with_hint("GET /agora shows the hub's did:key")
}

/// The core's answer to a signed order.
struct SignedOrderAnswer {
    by: AgentId,
    job: Option<JobId>,
    state: Option<State>,
    repeated: bool,
    uuid: Uuid,
}

/// Adds the ids of the message and the request that an error is about.
fn concerning(failure: Failure, envelope: &Envelope<'_>) -> Failure {
    let failure = failure.in_answer_to(envelope.id);
    let payload = Payload::read(envelope).ok();
    match payload.and_then(|payload| request_id_of(envelope, &payload)) {
        Some(id) => failure.for_request(id),
        None => failure,
    }
}

/// The request that an envelope refers to.
pub fn request_id_of<'a>(envelope: &Envelope<'a>, payload: &Payload<'a>) -> Option<&'a str> {
    match payload {
        Payload::Request(_) => Some(envelope.id),
        Payload::Offer(offer) => Some(offer.request_id),
        Payload::Result(output) => Some(output.request_id),
        Payload::Error(ErrorPayload { request_id, .. }) => *request_id,
        Payload::Accept(_) | Payload::Unspecified => None,
    }
}

/// Whether its sender has used this id before. The core decides what follows from that.
async fn was_sent(context: &AgoraContext, signature: &Signature) -> bool {
    let name = claim::signed_order(signature.home, &signature.native_id, &signature.id);
    context.engine.claim_target(name).await.is_ok_and(|target| target.is_some())
}

/// The command of the envelope, after its destination is resolved.
fn signed_command(
    context: &AgoraContext,
    proven: &ProvenEnvelope<'_>,
    hello: Option<&Hello<'_>>,
    uuid: Uuid,
) -> Result<Command, Failure> {
    let named = destination_key(proven.envelope, proven.source.path_agent)?;
    let named = named.map(|key| resolve_destination(context, proven, key)).transpose()?;
    if let Some(url) = hello.and_then(|hello| hello.endpoint) {
        let blocked = |why| Failure::bad_field("/payload/endpoint", &format!("{why}"));
        context.egress.check_url(url).map_err(blocked)?;
    }
    translate::signed_command(context, proven, named, uuid)
}

/// The key that an envelope is addressed to: the agent of the URL, else its `recipient`, else none
/// (R26–R29). URL and `recipient` must not differ.
fn destination_key(
    envelope: &Envelope<'_>,
    url: Option<PublicKey>,
) -> Result<Option<PublicKey>, Failure> {
    match (url, envelope.recipient) {
        (Some(url), Some(recipient)) if url != recipient => {
            Err(Failure::bad_field("/recipient", "is not the agent that the URL names"))
        }
        (url, recipient) => Ok(url.or(recipient)),
    }
}

/// The destination with that key, which the envelope or its URL names.
fn resolve_destination(
    context: &AgoraContext,
    proven: &ProvenEnvelope<'_>,
    key: PublicKey,
) -> Result<Destination, Failure> {
    if key == context.state.signer.key() {
        let signed = proven.envelope.recipient.is_some();
        return Ok(if signed { Destination::Hub } else { Destination::HubByPath });
    }
    let unknown = || Failure::new(Code::NotFound, "no agent has the recipient's key");
    proven.parties.recipient.map(Destination::Agent).ok_or_else(unknown)
}

/// The agents of other protocols that cannot accept the input.
async fn find_unfit(context: &AgoraContext, order: &JobRequest) -> Vec<UnfitAgent> {
    let agent = match order.to {
        RequestTarget::Agent(agent) => Some(agent),
        RequestTarget::Best { .. } => None,
    };
    let check = InputCheck { origin: ID, skill_names: &[&order.skill], agent, input: &order.input };
    input_check::find_unfit_agents(context, &check).await
}

/// The error for a sender above its rate limit: wait, unless the receiver has blocked it and
/// waiting does not help.
fn too_often(context: &AgoraContext, proven: &ProvenEnvelope<'_>, error: EdgeError) -> Failure {
    let Parties { sender, recipient, .. } = proven.parties;
    let blocked = context.engine.with_world(|world| Some(world.agent(recipient?)?.blocks(sender?)));
    match blocked {
        Some(true) => errors::from_refusal(&Refusal::Blocked),
        _ => errors::from_edge(error),
    }
}

/// The HELLO, if the envelope is one to the hub.
fn hello<'a>(
    context: &AgoraContext,
    proven: &ProvenEnvelope<'a>,
) -> Result<Option<Hello<'a>>, Failure> {
    let to_hub = proven.recipient().is_none_or(|to| to == context.state.signer.key());
    if proven.envelope.message_type != MessageType::Hello || !to_hub {
        return Ok(None);
    }
    Hello::read(proven.envelope.payload).map(Some)
}

/// The answer to a HELLO. Secrets are sent for the first HELLO only, never for a repeat (R69).
fn welcome(
    context: &AgoraContext,
    proven: &ProvenEnvelope<'_>,
    hello: &Hello<'_>,
    answer: SignedOrderAnswer,
) -> AcceptedEnvelope {
    let envelope = proven.envelope;
    let hello_to_hub = envelope.recipient == Some(context.state.signer.key()) && !answer.repeated;
    let until = context.engine.now().plus(TOKEN_LIFETIME);
    let token = (hello_to_hub && hello.inbox)
        .then(|| context.state.tokens.seal(InboxToken { agent: answer.by, expires_at: until }));
    let secret = hello.endpoint.filter(|_| hello_to_hub).and_then(|_| {
        let agent = context.engine.with_world(|world| world.agent(answer.by).cloned())?;
        Some(
            context.engine.hub_secret().webhook_secret(agent.id, agent.secret_generation).to_text(),
        )
    });
    let payload = Welcome {
        nonce: hello.nonce,
        hello_id: Some(envelope.id),
        hello_sender: Some(&envelope.sender_did),
        inbox_token: token.as_deref(),
        // In wall-clock time, which the reader shares.
        inbox_token_expires_at: token
            .as_ref()
            .map(|_| context.engine.wall_time().plus(TOKEN_LIFETIME)),
        hub: Some(context.state.signer.did()),
        webhook_secret: secret.as_deref(),
    };
    let key = proven.proof.key;
    AcceptedEnvelope {
        sender: answer.by,
        key,
        text: sign_now(context, MessageType::Welcome, &payload.write(), Some(key)).text,
        status: 200,
        request_id: None,
        job: None,
        expects_answer: false,
        repeated: answer.repeated,
        hello_to_hub,
        inbox_head: 0,
    }
}

/// The answer to all other envelopes.
async fn accepted(
    context: &AgoraContext,
    proven: &ProvenEnvelope<'_>,
    answer: SignedOrderAnswer,
) -> Result<AcceptedEnvelope, Failure> {
    let envelope = proven.envelope;
    let asks = matches!(proven.payload, Payload::Request(_));
    let accepts = matches!(proven.payload, Payload::Accept(_));
    // Only the job has the request of an accepted offer, and the id of a repeated request.
    let job = match answer.job.filter(|_| accepts || answer.repeated) {
        Some(id) => {
            context.engine.load_job(id).await.map_err(|failure| errors::from_engine(&failure))?
        }
        None => None,
    };
    if answer.repeated
        && job.as_deref().is_some_and(|job| !concerns(context, job, proven.recipient()))
    {
        return Err(errors::from_refusal(&Refusal::SameIdOtherContent));
    }
    let named = request_id_of(envelope, &proven.payload).map(str::to_owned);
    let request_id = named.or_else(|| job.as_deref().map(|job| foreign_id(job).into_owned()));
    let standing = request_id.as_deref().zip(answer.state.map(request_state));
    let payload = MessageStatus::accepted(envelope.id, standing).write();
    let key = proven.proof.key;
    let opened = job.map_or(answer.uuid, |job| job.uuid);
    Ok(AcceptedEnvelope {
        sender: answer.by,
        key,
        text: sign_now(context, MessageType::Status, &payload, Some(key)).text,
        status: 202,
        request_id,
        job: asks.then_some(opened),
        expects_answer: asks || accepts,
        repeated: answer.repeated,
        hello_to_hub: false,
        inbox_head: proven.parties.inbox_head,
    })
}

/// Whether the named party, if any, takes part in a job. A message about it to one party is not
/// repeated to another agent (R30).
fn concerns(context: &AgoraContext, job: &Job, named: Option<PublicKey>) -> bool {
    let Some(key) = named.filter(|key| *key != context.state.signer.key()) else { return true };
    let agent = translate::agent_of_key(context, key);
    agent.is_some_and(|agent| job.is_requested_by(agent) || request::involves(job, agent))
}
