//! Processing of an envelope: read, verify, rate-limit, address, act (R73).

use std::net::SocketAddr;

use rialto_core::alias::claim;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State, ask};
use rialto_core::refusal::Refusal;
use rialto_core::signed::{Deed, Signed, Whom};
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
use crate::face::fitting::{self, Wanted};
use crate::face::{Floor, Signer, Trouble};
use crate::kit::ed25519::PublicKey;

/// An envelope that was taken, and the answer to it.
pub struct Taken {
    pub by: AgentId,
    pub key: PublicKey,
    /// The answer, signed.
    pub text: String,
    pub status: u16,
    /// The request it is about, as its sender knows it.
    pub request_id: Option<String>,
    /// The hub's id of the job it opened.
    pub job: Option<Uuid>,
    /// Whether an answer to it may come from somebody else.
    pub awaits: bool,
    pub repeated: bool,
    /// Whether it was a HELLO that was signed for this hub.
    pub hello_to_hub: bool,
    /// The newest place in the sender's inbox before it acted.
    pub head: u64,
}

/// What the way an envelope came by says about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// The agent that the path names.
    pub to: Option<PublicKey>,
    /// Whose connection it came over.
    pub from: Option<PublicKey>,
    /// Where it came from.
    pub peer: Option<SocketAddr>,
    /// Whether it must be a new HELLO signed for this hub, since it opens a connection.
    pub greets: bool,
}

/// Why an envelope was not taken, and who is told, if that was proven.
pub struct Untaken {
    pub failure: Box<Failure>,
    pub to: Option<PublicKey>,
}

impl From<Failure> for Untaken {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure), to: None }
    }
}

/// Takes an envelope, or says why not.
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

/// Does what a proven envelope says.
async fn act(floor: &Floor, proven: Proven<'_>) -> Result<Taken, Failure> {
    let (way, proof) = (proven.way, proven.proof);
    if way.from.is_some_and(|from| from != proof.key) {
        return Err(Failure::unauthorized("this connection belongs to another key"));
    }
    // What the hub signed was said to somebody, and is nobody's to bring back (R24, R70).
    if is_held(floor, proof.key) {
        return Err(Failure::unauthorized(
            "this key is held by the hub and cannot send envelopes to it",
        ));
    }
    let hub = floor.agora.hub.key();
    if proven.envelope.hub.is_some_and(|named| named != hub) {
        let text = "this envelope is signed for another hub: recipient.hub is not this one's key";
        return Err(Failure::unauthorized(text).with_hint("GET /agora tells the hub's did:key"));
    }
    let is_greeting = proven.envelope.kind == Kind::Hello && proven.envelope.recipient == Some(hub);
    if way.greets && !is_greeting {
        return Err(not_a_greeting());
    }
    // Only what the hub signs for others carries its mark (R70).
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
    // Whoever is new counts as a registration from where it came.
    let limited = limited.or_else(|| {
        order.newcomer.as_ref().and_then(|_| floor.writes.count_newcomer(way.peer).err())
    });
    let hindrance = match limited {
        Some(trouble) => Some(too_often(floor, &proven, &trouble)),
        None => ordered.err(),
    };
    // Whether it was said before comes first: then it is answered, or refused, for that (R73).
    let was_said = (hindrance.is_some() || way.greets) && was_said(floor, &order).await;
    // A HELLO that somebody else may have seen opens no connection (R69).
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
        // Its first envelope counts towards what it may write as the agent it has become.
        let _ = floor.writes.count(Signer::Agent(by));
    }
    floor.engine.seen(by);
    let heard = Heard { by, job, state, repeated, uuid };
    match hello {
        Some(hello) => Ok(welcome(floor, &proven, &hello, heard)),
        None => accepted(floor, &proven, heard, head).await,
    }
}

/// What opens no connection.
pub fn not_a_greeting() -> Failure {
    let text = "the first frame must be a new HELLO whose signed recipient is the hub";
    Failure::unauthorized(text).with_hint("GET /agora tells the hub's did:key")
}

/// Whether the hub signs with this key, for itself or for an agent of another protocol.
fn is_held(floor: &Floor, key: PublicKey) -> bool {
    let of_another = |world: &World| {
        let agent = world.agent(world.agent_named(ID, &key.did())?)?;
        Some(agent.home != ID)
    };
    key == floor.agora.hub.key() || floor.engine.look(of_another) == Some(true)
}

/// What the core made of it.
struct Heard {
    by: AgentId,
    job: Option<JobId>,
    state: Option<State>,
    repeated: bool,
    uuid: Uuid,
}

/// Names the message and the request an error is about.
fn concerning(failure: Failure, envelope: &Envelope<'_>) -> Failure {
    let failure = failure.answering(envelope.id);
    let payload = Payload::read(envelope).ok();
    match payload.and_then(|payload| request_id(envelope, &payload)) {
        Some(id) => failure.about(id),
        None => failure,
    }
}

/// The request an envelope says it is about.
pub fn request_id<'a>(envelope: &Envelope<'a>, payload: &Payload<'a>) -> Option<&'a str> {
    match payload {
        Payload::Request(_) => Some(envelope.id),
        Payload::Offer(offer) => Some(offer.request_id),
        Payload::Result(output) => Some(output.request_id),
        Payload::Error(Failed { request_id, .. }) => *request_id,
        Payload::Accept(_) | Payload::Open => None,
    }
}

/// Whether its sender has used its id; what is done about that is decided with everything else.
async fn was_said(floor: &Floor, order: &Signed) -> bool {
    let name = claim::signed(order.home, &order.native, &order.id);
    floor.engine.claim(name).await.is_ok_and(|target| target.is_some())
}

/// What is ordered, once it is known whom it is for.
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

/// Notes who of another protocol could not use what it would be asked to.
async fn find_unfit(floor: &Floor, deed: &mut Deed) {
    let Deed::Ask(ask) = deed else { return };
    let of = match ask.to {
        Whom::Agent(agent) => Some(agent),
        Whom::Best { .. } => None,
    };
    let wanted = Wanted { by: ID, names: &[&ask.skill], of, input: &ask.input };
    ask.unfit = fitting::unfit(floor, &wanted).await;
}

/// Who sends too much is told to wait, unless that would not help: whom it writes to has blocked it.
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

/// A HELLO to the hub.
fn hello<'a>(floor: &Floor, proven: &Proven<'a>) -> Result<Option<Hello<'a>>, Failure> {
    let to_hub = proven.to().is_none_or(|to| to == floor.agora.hub.key());
    if proven.envelope.kind != Kind::Hello || !to_hub {
        return Ok(None);
    }
    Hello::read(proven.envelope.payload).map(Some)
}

/// The answer to a HELLO. Secrets are for whoever says it first, and nobody who says it again (R69).
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
        // Told on the clock that its reader has.
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

/// The answer to everything else.
async fn accepted(
    floor: &Floor,
    proven: &Proven<'_>,
    heard: Heard,
    head: u64,
) -> Result<Taken, Failure> {
    let envelope = proven.envelope;
    let asks = matches!(proven.payload, Payload::Request(_));
    let accepts = matches!(proven.payload, Payload::Accept(_));
    // What only the job itself tells: the request an offer was for, and the id of a repeated one.
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

/// Whether whoever is named, if anybody is, has to do with a job: what was said about it to one of
/// its parties is not said again to somebody else (R30).
fn concerns(floor: &Floor, job: &Job, named: Option<PublicKey>) -> bool {
    let Some(key) = named.filter(|key| *key != floor.agora.hub.key()) else { return true };
    let agent = translate::agent_of(floor, key);
    agent.is_some_and(|agent| job.asked_by(agent) || ask::concerns(job, agent))
}

/// What a request is called by those of this protocol who are part of it.
pub fn foreign_id(job: &Job) -> std::borrow::Cow<'_, str> {
    match job.origin == ID {
        true => job.foreign.split_once('/').map_or(&*job.foreign, |(_, id)| id).into(),
        false => job.uuid.to_string().into(),
    }
}
