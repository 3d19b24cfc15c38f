//! The way of every envelope, whatever it came over: read, proven, counted, addressed, acted on (R73).

use rialto_core::alias::{Target, claim};
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State};
use rialto_core::signed::Signed;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::address::{self, Address};
use super::envelope::{self, Envelope};
use super::failure::Failure;
use super::payload::{Failed, Hello, Notice, Payload, Welcome};
use super::refusals::{self, state_of};
use super::token::{LIVES, Token};
use super::translate::{self, Proven};
use super::{ID, Kind, say};
use crate::face::Floor;
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
}

/// Takes an envelope, or says why not.
pub async fn take(floor: &Floor, bytes: &[u8], way: Way) -> Result<Taken, Failure> {
    let json = envelope::parse(bytes)?;
    let envelope = Envelope::read(&json)?;
    let about = |failure: Failure| concerning(failure, &envelope);
    let payload = Payload::read(&envelope).map_err(about)?;
    let proof = floor.agora.prove(&envelope, floor.engine.now()).map_err(about)?;
    if way.from.is_some_and(|from| from != proof.key) {
        return Err(about(Failure::unauthorized("this connection is another key's")));
    }
    let limited = floor.writes.count(proof.key.as_bytes());
    let named = address::named(&envelope, way.to).map_err(about)?;
    let named = match named {
        Some(key) => Some((key, address::resolve(floor, key).map_err(about)?)),
        None => None,
    };
    let proven = Proven { envelope: &envelope, proof, payload, named };
    let hello = hello(floor, &proven).map_err(about)?;
    let uuid = floor.engine.ids().uuid();
    let order = translate::order(floor, &proven, uuid).map_err(about)?;
    if let Err(trouble) = limited
        && !was_taken(floor, &order).await
    {
        return Err(about(refusals::trouble(&trouble)));
    }
    let known = translate::agent_of(floor, proof.key);
    let head = known.map_or(0, |by| floor.engine.look(|world| world.mailbox(by).head));
    let ran = floor.engine.run(Command::Signed(Box::new(order))).await;
    let answer = ran.map_err(|failure| about(refusals::failed(&failure)))?;
    let Answer::Heard { by, job, state, repeated } = answer else {
        return Err(about(refusals::failed(&EngineFailure::Fault)));
    };
    floor.engine.seen(by);
    let heard = Heard { by, job, state, repeated, uuid };
    match hello {
        Some(hello) => Ok(welcome(floor, &proven, &hello, heard)),
        None => accepted(floor, &proven, heard, head).await.map_err(about),
    }
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

/// Who repeats itself is told the same again, also when it may not say anything new (R73).
async fn was_taken(floor: &Floor, order: &Signed) -> bool {
    let name = claim::signed(order.home, &order.native, &order.id);
    let found = floor.engine.claim(name).await;
    match found.ok().flatten() {
        Some(Target::Heard { content, .. }) => content == order.content,
        _ => false,
    }
}

/// A HELLO to the hub, with an endpoint that may be called.
fn hello<'a>(floor: &Floor, proven: &Proven<'a>) -> Result<Option<Hello<'a>>, Failure> {
    let to_hub = !matches!(proven.named, Some((_, Address::Agent(_))));
    if proven.envelope.kind != Kind::Hello || !to_hub {
        return Ok(None);
    }
    let hello = Hello::read(proven.envelope.payload)?;
    if let Some(url) = hello.endpoint {
        let blocked = |why| Failure::bad_field("/payload/endpoint", &format!("{why}"));
        floor.egress.check(url).map_err(blocked)?;
    }
    Ok(Some(hello))
}

/// The answer to a HELLO. Secrets are for whoever says it first, and nobody who says it again (R69).
fn welcome(floor: &Floor, proven: &Proven<'_>, hello: &Hello<'_>, heard: Heard) -> Taken {
    let envelope = proven.envelope;
    let hello_to_hub = envelope.recipient == Some(floor.agora.hub.key()) && !heard.repeated;
    let until = floor.engine.now().plus(LIVES);
    let token = (hello_to_hub && hello.inbox)
        .then(|| floor.agora.tokens.seal(Token { agent: heard.by, until }));
    let secret = hello.endpoint.filter(|_| !heard.repeated).and_then(|_| {
        let agent = floor.engine.look(|world| world.agent(heard.by).cloned())?;
        Some(floor.engine.secret().webhook_secret(agent.id, agent.secret_generation).text())
    });
    let sender = proven.proof.key.did();
    let payload = Welcome {
        nonce: hello.nonce,
        hello_id: Some(envelope.id),
        hello_sender: Some(&sender),
        inbox_token: token.as_deref(),
        inbox_token_expires_at: token.as_ref().map(|_| until),
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

/// What a request is called by those of this protocol who are part of it.
pub fn foreign_id(job: &Job) -> std::borrow::Cow<'_, str> {
    match job.origin == ID {
        true => job.foreign.split_once('/').map_or(&*job.foreign, |(_, id)| id).into(),
        false => job.uuid.to_string().into(),
    }
}
