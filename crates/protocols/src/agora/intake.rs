//! Processing of an envelope: read, verify, rate-limit, address, act (R73).

use std::net::SocketAddr;

use rialto_core::alias::claim;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State, request};
use rialto_core::refusal::Refusal;
use rialto_core::signed_order::{Deed, Signed, Whom};
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::address;
use super::envelope::{self, Envelope};
use super::failure::Failure;
use super::payload::{Failed, Hello, Notice, Payload, Welcome};
use super::refusals::{self, state_of};
use super::token::{LIVES, Token};
use super::translate::{self, Proven};
use super::{ID, Kind, say};
use crate::adapter::input_check::{self, Wanted};
use crate::adapter::{Floor, Signer, Trouble};
use crate::kit::ed25519::PublicKey;

/// An accepted envelope, and the answer to it.
pub struct Taken {
    pub by: AgentId,
    pub key: PublicKey,
    /// The signed answer.
    pub text: String,
    pub status: u16,
    /// The request it is about, by the id that its sender uses.
    pub request_id: Option<String>,
    /// The hub's id of the job that it opened.
    pub job: Option<Uuid>,
    /// Whether another agent may answer it.
    pub awaits: bool,
    pub repeated: bool,
    /// Whether it was a HELLO signed for this hub.
    pub hello_to_hub: bool,
    /// The newest position in the sender's inbox before the envelope was executed.
    pub head: u64,
}

/// Where an envelope came from, and what that requires.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// The agent that the path names.
    pub to: Option<PublicKey>,
    /// The key that owns the connection.
    pub from: Option<PublicKey>,
    /// The network address of the sender.
    pub peer: Option<SocketAddr>,
    /// Whether it opens a connection and must therefore be a new HELLO signed for this hub.
    pub greets: bool,
}

/// Why an envelope was not accepted, and its sender's key if that was proven.
pub struct Untaken {
    pub failure: Box<Failure>,
    pub to: Option<PublicKey>,
}

impl From<Failure> for Untaken {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure), to: None }
    }
}

/// Accepts an envelope, or returns why not.
pub async fn take(floor: &Floor, bytes: &[u8], way: Way) -> Result<Taken, Untaken> {
    let json = envelope::parse(bytes)?;
    let envelope = Envelope::read(&json)?;
    let about = |failure: Failure| concerning(failure, &envelope);
    let payload = Payload::read(&envelope).map_err(about)?;
    let received_at = floor.engine.wall();
    let proof = floor.agora.prove(&envelope, received_at).map_err(about)?;
    let proven = Proven { envelope: &envelope, proof, received_at, payload, way };
    let taken = act(floor, proven).await;
    taken.map_err(|failure| Untaken { to: Some(proof.key), ..about(failure).into() })
}

/// Executes a proven envelope.
async fn act(floor: &Floor, proven: Proven<'_>) -> Result<Taken, Failure> {
    let (way, proof) = (proven.way, proven.proof);
    if way.from.is_some_and(|from| from != proof.key) {
        return Err(Failure::unauthorized("this connection belongs to another key"));
    }
    // Envelopes that the hub signed were for other parties and cannot be sent back to it (R24,
    // R70).
    if is_held(floor, proof.key) {
        return Err(Failure::unauthorized(
            "this key is held by the hub and cannot send envelopes to it",
        ));
    }
    let hub = floor.agora.hub.key();
    if proven.envelope.hub.is_some_and(|named| named != hub) {
        let text = "this envelope is signed for another hub: recipient.hub is not this one's key";
        return Err(Failure::unauthorized(text).with_hint("GET /agora shows the hub's did:key"));
    }
    let is_greeting = proven.envelope.kind == Kind::Hello && proven.envelope.recipient == Some(hub);
    if way.greets && !is_greeting {
        return Err(not_a_greeting());
    }
    // Only envelopes that the hub signs for others have this mark (R70).
    if proven.envelope.bridge.is_some() {
        return Err(Failure::bad_field("/bridge", "is reserved for the hub; remove it"));
    }
    let known = translate::agent_of(floor, proof.key);
    let signer = known.map_or(Signer::Name(proof.key.as_bytes()), Signer::Agent);
    let limited = floor.writes.count(signer).err();
    let hello = hello(floor, &proven)?;
    let uuid = floor.engine.ids().uuid();
    let mut order = translate::order(floor, &proven);
    let ordered = deed(floor, &proven, hello.as_ref(), uuid).map(|deed| order.deed = deed);
    find_unfit(floor, &mut order.deed).await;
    // A new sender counts as a registration from its network address.
    let limited = limited.or_else(|| {
        order.newcomer.as_ref().and_then(|_| floor.writes.count_newcomer(way.peer).err())
    });
    let hindrance = match limited {
        Some(trouble) => Some(too_often(floor, &proven, &trouble)),
        None => ordered.err(),
    };
    // An envelope that was sent before gets its earlier answer or refusal first (R73).
    let was_said = (hindrance.is_some() || way.greets) && was_said(floor, &order).await;
    // A HELLO that another party may have seen does not open a connection (R69).
    if way.greets && was_said {
        return Err(not_a_greeting());
    }
    if let Some(failure) = hindrance.filter(|_| !was_said) {
        return Err(failure);
    }
    let head = known.map_or(0, |by| floor.engine.look(|world| world.mailbox(by).head));
    let ran = floor.engine.run(Command::Signed(Box::new(order))).await;
    let answer = ran.map_err(|failure| refusals::failed(&failure))?;
    let Answer::Heard { by, job, state, repeated } = answer else {
        return Err(refusals::failed(&EngineFailure::Fault));
    };
    if known.is_none() {
        // The first envelope also counts against the limit of the agent that was just registered.
        let _ = floor.writes.count(Signer::Agent(by));
    }
    floor.engine.seen(by);
    let heard = Heard { by, job, state, repeated, uuid };
    match hello {
        Some(hello) => Ok(welcome(floor, &proven, &hello, heard)),
        None => accepted(floor, &proven, heard, head).await,
    }
}

/// The error for a first frame that does not open a connection.
pub fn not_a_greeting() -> Failure {
    let text = "the first frame must be a new HELLO whose signed recipient is the hub";
    Failure::unauthorized(text).with_hint("GET /agora shows the hub's did:key")
}

/// Whether the hub signs with this key, for itself or for a bridged agent.
fn is_held(floor: &Floor, key: PublicKey) -> bool {
    let of_another = |world: &World| {
        let agent = world.agent(world.agent_named(ID, &key.did())?)?;
        Some(agent.home != ID)
    };
    key == floor.agora.hub.key() || floor.engine.look(of_another) == Some(true)
}

/// The core's answer to a signed order.
struct Heard {
    by: AgentId,
    job: Option<JobId>,
    state: Option<State>,
    repeated: bool,
    uuid: Uuid,
}

/// Adds the ids of the message and the request that an error is about.
fn concerning(failure: Failure, envelope: &Envelope<'_>) -> Failure {
    let failure = failure.answering(envelope.id);
    let payload = Payload::read(envelope).ok();
    match payload.and_then(|payload| request_id(envelope, &payload)) {
        Some(id) => failure.about(id),
        None => failure,
    }
}

/// The request that an envelope refers to.
pub fn request_id<'a>(envelope: &Envelope<'a>, payload: &Payload<'a>) -> Option<&'a str> {
    match payload {
        Payload::Request(_) => Some(envelope.id),
        Payload::Offer(offer) => Some(offer.request_id),
        Payload::Result(output) => Some(output.request_id),
        Payload::Error(Failed { request_id, .. }) => *request_id,
        Payload::Accept(_) | Payload::Open => None,
    }
}

/// Whether its sender has used this id before. The core decides what follows from that.
async fn was_said(floor: &Floor, order: &Signed) -> bool {
    let name = claim::signed(order.home, &order.native, &order.id);
    floor.engine.claim(name).await.is_ok_and(|target| target.is_some())
}

/// The order of the envelope, after its destination is resolved.
fn deed(
    floor: &Floor,
    proven: &Proven<'_>,
    hello: Option<&Hello<'_>>,
    uuid: Uuid,
) -> Result<Deed, Failure> {
    let named = address::named(proven.envelope, proven.way.to)?;
    let named = named.map(|key| address::resolve(floor, proven.envelope, key)).transpose()?;
    if let Some(url) = hello.and_then(|hello| hello.endpoint) {
        let blocked = |why| Failure::bad_field("/payload/endpoint", &format!("{why}"));
        floor.egress.check(url).map_err(blocked)?;
    }
    translate::deed(floor, proven, named, uuid)
}

/// Records which agents of other protocols cannot accept the input.
async fn find_unfit(floor: &Floor, deed: &mut Deed) {
    let Deed::Ask(ask) = deed else { return };
    let of = match ask.to {
        Whom::Agent(agent) => Some(agent),
        Whom::Best { .. } => None,
    };
    let wanted = Wanted { by: ID, names: &[&ask.skill], of, input: &ask.input };
    ask.unfit = input_check::unfit(floor, &wanted).await;
}

/// The error for a sender above its rate limit: wait, unless the receiver has blocked it and
/// waiting does not help.
fn too_often(floor: &Floor, proven: &Proven<'_>, trouble: &Trouble) -> Failure {
    let to = proven.to().and_then(|to| translate::agent_of(floor, to));
    let by = translate::agent_of(floor, proven.proof.key);
    let blocked = floor.engine.look(|world| {
        let receiver = world.agent(to?).filter(|agent| agent.active)?;
        Some(receiver.blocks(by?))
    });
    match blocked {
        Some(true) => refusals::refused(&Refusal::Blocked),
        _ => refusals::trouble(trouble),
    }
}

/// The HELLO, if the envelope is one to the hub.
fn hello<'a>(floor: &Floor, proven: &Proven<'a>) -> Result<Option<Hello<'a>>, Failure> {
    let to_hub = proven.to().is_none_or(|to| to == floor.agora.hub.key());
    if proven.envelope.kind != Kind::Hello || !to_hub {
        return Ok(None);
    }
    Hello::read(proven.envelope.payload).map(Some)
}

/// The answer to a HELLO. Secrets are sent for the first HELLO only, never for a repeat (R69).
fn welcome(floor: &Floor, proven: &Proven<'_>, hello: &Hello<'_>, heard: Heard) -> Taken {
    let envelope = proven.envelope;
    let hello_to_hub = envelope.recipient == Some(floor.agora.hub.key()) && !heard.repeated;
    let until = floor.engine.now().plus(LIVES);
    let token = (hello_to_hub && hello.inbox)
        .then(|| floor.agora.tokens.seal(Token { agent: heard.by, until }));
    let secret = hello.endpoint.filter(|_| hello_to_hub).and_then(|_| {
        let agent = floor.engine.look(|world| world.agent(heard.by).cloned())?;
        Some(floor.engine.secret().webhook_secret(agent.id, agent.secret_generation).text())
    });
    let sender = proven.proof.key.did();
    let payload = Welcome {
        nonce: hello.nonce,
        hello_id: Some(envelope.id),
        hello_sender: Some(&sender),
        inbox_token: token.as_deref(),
        // In wall-clock time, which the reader shares.
        inbox_token_expires_at: token.as_ref().map(|_| floor.engine.wall().plus(LIVES)),
        hub: Some(floor.agora.hub.did()),
        webhook_secret: secret.as_deref(),
    };
    let key = proven.proof.key;
    Taken {
        by: heard.by,
        key,
        text: say::sign(floor, Kind::Welcome, &payload.write(), Some(key)).text,
        status: 200,
        request_id: None,
        job: None,
        awaits: false,
        repeated: heard.repeated,
        hello_to_hub,
        head: 0,
    }
}

/// The answer to all other envelopes.
async fn accepted(
    floor: &Floor,
    proven: &Proven<'_>,
    heard: Heard,
    head: u64,
) -> Result<Taken, Failure> {
    let envelope = proven.envelope;
    let asks = matches!(proven.payload, Payload::Request(_));
    let accepts = matches!(proven.payload, Payload::Accept(_));
    // Only the job has the request of an accepted offer, and the id of a repeated request.
    let job = match heard.job.filter(|_| accepts || heard.repeated) {
        Some(id) => floor.engine.job(id).await.map_err(|failure| refusals::failed(&failure))?,
        None => None,
    };
    if heard.repeated && job.as_deref().is_some_and(|job| !concerns(floor, job, proven.to())) {
        return Err(refusals::refused(&Refusal::SameIdOtherContent));
    }
    let named = request_id(envelope, &proven.payload).map(str::to_owned);
    let request_id = named.or_else(|| job.as_deref().map(|job| foreign_id(job).into_owned()));
    let standing = request_id.as_deref().zip(heard.state.map(state_of));
    let payload = Notice::accepted(envelope.id, standing).write();
    let key = proven.proof.key;
    let opened = job.map_or(heard.uuid, |job| job.uuid);
    Ok(Taken {
        by: heard.by,
        key,
        text: say::sign(floor, Kind::Status, &payload, Some(key)).text,
        status: 202,
        request_id,
        job: asks.then_some(opened),
        awaits: asks || accepts,
        repeated: heard.repeated,
        hello_to_hub: false,
        head,
    })
}

/// Whether the named party, if any, takes part in a job. A message about it to one party is not
/// repeated to another agent (R30).
fn concerns(floor: &Floor, job: &Job, named: Option<PublicKey>) -> bool {
    let Some(key) = named.filter(|key| *key != floor.agora.hub.key()) else { return true };
    let agent = translate::agent_of(floor, key);
    agent.is_some_and(|agent| job.asked_by(agent) || request::concerns(job, agent))
}

/// The id of a request for its parties in this protocol.
pub fn foreign_id(job: &Job) -> std::borrow::Cow<'_, str> {
    match job.origin == ID {
        true => job.foreign.split_once('/').map_or(&*job.foreign, |(_, id)| id).into(),
        false => job.uuid.to_string().into(),
    }
}
