//! Offers for a job: list, make, accept.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, OfferRef, OfferTerms};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Offer, Selection, State as JobState};
use rialto_core::money::Credits;
use rialto_core::number;
use rialto_core::time::Millis;
use rialto_core::world::World;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;

use super::view::{JobView, Viewer};
use crate::v1::agent_names;
use crate::v1::auth::AgentCaller;
use crate::v1::params::{AgentName, Amount};
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, format_amount, format_time, json_response, ok_response};
use crate::v1::strict_fields;

/// Decimals an amount may have.
const DECIMALS: usize = 6;
/// How long an offer is valid: at most, and by default.
const VALID_MAX: Millis = Millis::hours(24);
pub const VALID_DEFAULT: Millis = Millis::minutes(5);
/// Units of time, in milliseconds.
const UNITS: [(&str, i64); 3] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

#[derive(Serialize, JsonSchema)]
pub struct OfferList {
    offers: Vec<OfferView>,
}

/// One offer.
#[derive(Serialize, JsonSchema)]
pub struct OfferView {
    /// Identifies this offer for as long as the job is stored; notices contain it, too.
    id: usize,
    agent: u64,
    name: String,
    price: Number,
    valid_until: Time,
    /// The job was assigned for it.
    accepted: bool,
}

impl OfferView {
    fn of(world: &World, job: &Job, (id, offer): (usize, &Offer)) -> Self {
        let name = world.agent(offer.by).map(|agent| agent.name.clone());
        Self {
            id,
            agent: offer.by.0,
            name: name.unwrap_or_default(),
            price: format_amount(offer.price),
            valid_until: format_time(offer.valid_until),
            accepted: accepted_offer(job).is_some_and(|taken| std::ptr::eq(taken, offer)),
        }
    }
}

/// The offer whose price the worker has; the newest if there are several.
pub fn accepted_offer(job: &Job) -> Option<&Offer> {
    let turn = job.assignment?;
    let fits = |offer: &&Offer| {
        offer.by == turn.worker && job.payment.price_step.round_price(offer.price) == turn.price
    };
    job.candidates.offers.iter().rev().find(fits)
}

/// The offers an agent may see: the requester sees all of them once bidding has closed, a bidder
/// its own.
pub fn visible_offers(job: &Job, by: AgentId) -> impl Iterator<Item = (usize, &Offer)> {
    // Sealed until the auction closes, so that bidders cannot adjust to the bids of others.
    let auction = matches!(job.selection, Selection::Auction { .. });
    let sealed = auction && matches!(job.state, JobState::Negotiating | JobState::Queued);
    let all = job.is_requested_by(by) && !sealed;
    (0..).zip(&job.candidates.offers).filter(move |(_, offer)| all || offer.by == by)
}

/// The job with this public id, if the agent was invited to make an offer for it.
async fn find_invited_job(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Option<Arc<Job>>, Problem> {
    let Ok(uuid) = id.parse::<uuid::fmt::Hyphenated>() else { return Ok(None) };
    let job = context.engine.find_job(&JobRef::Uuid(uuid.into_uuid())).await?;
    Ok(job.filter(|job| {
        job.candidates.invited.contains(&by) || job.candidates.offers.iter().any(|one| one.by == by)
    }))
}

/// A job that an invited agent may see before it has it, so that it can choose a price.
pub async fn find_open_invitation(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Option<Arc<Job>>, Problem> {
    let open =
        |job: &Arc<Job>| job.selection == Selection::Offers && job.state == JobState::Negotiating;
    Ok(find_invited_job(context, by, id).await?.filter(open))
}

/// A job that the agent was invited to or is a party of; other callers get a 404.
async fn find_negotiated_job(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Arc<Job>, Problem> {
    match find_invited_job(context, by, id).await? {
        Some(job) => Ok(job),
        None => super::find_party_job(context, by, id).await,
    }
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/offers`.
    #[schemars(deny_unknown_fields)]
    OfferBody {
        /// What the caller would do the job for.
        price: Amount,
        /// How long the offer stands: `60s`, `5m` or `1h`, at most a day; five minutes by default.
        #[schemars(regex(pattern = "^[+]?[0-9]+[smh]$"))]
        valid_for: Option<String>,
    }
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/accept`: the offer's id, or its agent and price.
    #[schemars(deny_unknown_fields)]
    AcceptBody {
        /// The id of the offer, as a number or as text.
        offer: Option<OfferId>,
        /// The agent that made it.
        agent: Option<AgentName>,
        /// Its price, where the agent made several offers.
        price: Option<Amount>,
    }
}

/// The id of an offer in a body.
pub enum OfferId {}
rialto_protocols::value_schema!(OfferId, {"type": ["string", "integer"]});

/// `GET /v1/jobs/{id}/offers`.
pub async fn list_offers(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let job = find_negotiated_job(&context, by.id, &id).await?;
    let view = |world: &World| {
        visible_offers(&job, by.id).map(|offer| OfferView::of(world, &job, offer)).collect()
    };
    Ok(ok_response(&OfferList { offers: context.engine.with_world(view) }))
}

/// `POST /v1/jobs/{id}/offers`: makes an offer, by an agent that has the skill.
pub async fn make_offer(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let sent = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&sent, OfferBody::MEMBERS)?;
    let price = f.required_credits("price", DECIMALS)?;
    let valid_for = parse_valid_for(&f)?;
    let job = offer_price(&context, by, &id, price, valid_for).await?;
    let made = newest_offer(&job, by.id).ok_or_else(Problem::not_found)?;
    let view = context.engine.with_world(|world| OfferView::of(world, &job, made));
    Ok(json_response(StatusCode::CREATED, &view))
}

/// Offers to do a job for a price; the job with the offer.
pub async fn offer_price(
    context: &HubContext,
    by: AgentCaller,
    id: &str,
    price: Credits,
    valid_for: Millis,
) -> Result<Arc<Job>, Problem> {
    let uuid = id.parse::<uuid::fmt::Hyphenated>().map_err(|_| Problem::not_found())?;
    let job = JobRef::Uuid(uuid.into_uuid());
    let terms = OfferTerms::Open { valid_for };
    let order = Command::Offer { job, by: by.id, price, terms };
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(job),
        _ => Err(Problem::not_found()),
    }
}

/// The last offer of an agent, and its id.
pub fn newest_offer(job: &Job, by: AgentId) -> Option<(usize, &Offer)> {
    (0..).zip(&job.candidates.offers).filter(|(_, offer)| offer.by == by).last()
}

/// An offer's id, as a number or as text.
fn parse_offer_id(f: &Fields<'_, '_>) -> Result<Option<u32>, Malformed> {
    let Some(given) = f.get("offer") else { return Ok(None) };
    let id = match given.value() {
        ijson::JsonValue::String(text) => text.parse().ok(),
        ijson::JsonValue::Number(digits) => {
            number::parse_integer(digits).ok().and_then(|id| u32::try_from(id).ok())
        }
        _ => None,
    };
    let wrong =
        || f.malformed("offer", "must be an offer's id, as GET /v1/jobs/{id}/offers shows it");
    id.map(Some).ok_or_else(wrong)
}

/// Parses a duration such as `"60s"`.
fn parse_valid_for(f: &Fields<'_, '_>) -> Result<Millis, Malformed> {
    let Some(text) = f.text("valid_for")? else { return Ok(VALID_DEFAULT) };
    let length = UNITS.iter().find_map(|(unit, ms)| {
        let count = text.strip_suffix(unit)?.parse::<u32>().ok()?;
        Some(Millis(ms * i64::from(count)))
    });
    let fits = |length: &Millis| *length > Millis(0) && *length <= VALID_MAX;
    let wrong = || {
        f.malformed("valid_for", "must be a duration like \"60s\", \"5m\" or \"1h\", at most a day")
    };
    length.filter(fits).ok_or_else(wrong)
}

/// The offers that a requester sees together with its job.
pub fn brief_offers(job: &Job, by: AgentId) -> Vec<BriefOffer> {
    let brief = |(id, offer): (usize, &Offer)| BriefOffer {
        id,
        agent: offer.by.0,
        price: format_amount(offer.price),
        valid_until: format_time(offer.valid_until),
    };
    visible_offers(job, by).map(brief).collect()
}

/// One offer with the fields needed to accept it.
#[derive(Serialize, JsonSchema)]
pub struct BriefOffer {
    id: usize,
    agent: u64,
    price: Number,
    valid_until: Time,
}

/// `POST /v1/jobs/{id}/accept`: the requester accepts an offer, identified by its id, or by its
/// maker and price.
pub async fn accept_offer(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let json = ijson::read(&body).map_err(Malformed::from)?;
    let f = strict_fields::parse_fields(&json, AcceptBody::MEMBERS)?;
    let (place, name) = (parse_offer_id(&f)?, agent_names::parse_agent_name(&f, "agent")?);
    let price = f.credits("price", DECIMALS)?;
    if place.is_none() && name.is_none() {
        let text = "give \"offer\", the id of the offer, or \"agent\" and \"price\" of the offer";
        return Err(f.malformed("offer", text).into());
    }
    let job = super::find_party_job(&context, by.id, &id).await?;
    let find = |name: &String| {
        context.engine.with_world(|world| agent_names::find_agent(world, name, "/agent"))
    };
    let maker = name.as_ref().map(find).transpose()?;
    let offer = match (place, maker) {
        (Some(place), _) => {
            // If agent or price are given besides the id, they must match that offer.
            let named =
                usize::try_from(place).ok().and_then(|place| job.candidates.offers.get(place));
            let other = |offer: &Offer| {
                let other_maker = maker.is_some_and(|maker| maker != offer.by);
                other_maker || price.is_some_and(|price| price != offer.price)
            };
            if named.is_some_and(other) {
                return Err(f.malformed("offer", "does not match the given agent or price").into());
            }
            OfferRef::Index(place)
        }
        (None, Some(by)) => {
            price.map_or(OfferRef::Only { by }, |price| OfferRef::Price { by, price })
        }
        (None, None) => return Err(Problem::not_found()),
    };
    let job = accept(&context, &by, &job, offer).await?;
    Ok(ok_response(&JobView::full(&job, Viewer::Requester)))
}

/// Accepts an offer for a job of the caller.
pub async fn accept(
    context: &HubContext,
    by: &AgentCaller,
    job: &Job,
    offer: OfferRef,
) -> Result<Arc<Job>, Problem> {
    let order = Command::accept_offer(JobRef::Id(job.id), by.id, offer);
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(job),
        _ => Err(Problem::not_found()),
    }
}
