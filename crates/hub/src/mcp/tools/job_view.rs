//! A job as tools show it.

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Offer, State};
use rialto_core::money::Credits;
use rialto_core::world::World;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::object::ObjectWriter;

use super::error::ToolError;
use super::names::address_of;
use super::output::ToolOutput;
use super::part::{self, Part};
use super::stranger_text::is_plain_name;
use super::waiting::shown_state;
use crate::mcp::wire::result::json_array;
use crate::v1::jobs::offers::visible_offers;
use crate::v1::jobs::view::cause_name;

/// Decimals of amounts.
pub const DECIMALS: usize = 2;
/// Offers that are shown, the cheapest first.
const OFFERS_SHOWN: usize = 20;

/// What a caller wants to see of a job.
#[derive(Clone, Debug, Default)]
pub struct JobView {
    /// Input or output in parts, from this character on.
    pub part: Option<(Part, usize)>,
    /// An earlier call opened the job.
    pub repeated: bool,
    /// What else to do; otherwise it follows from the state.
    pub next: Option<String>,
}

impl JobView {
    /// The job as one of its parties, or an agent that may make an offer, sees it.
    pub fn write(self, context: &HubContext, job: &Job, viewer: AgentId) -> ToolOutput {
        let is_requester = job.is_requested_by(viewer);
        let mut untrusted = Vec::new();
        if !is_plain_name(&job.request.skill) {
            untrusted.push("/skill");
        }
        let mut view = context.engine.with_world(|world| head(world, job, is_requester));
        let mut next = None;
        if let Some((kind, from)) = self.part {
            let text = match kind {
                Part::Input => Some(job.request.input.as_str()),
                Part::Output => output_of(job),
            };
            if let Some(text) = text {
                let shown = part::cut_part(text, from);
                view = view.raw("part", &shown.write(kind));
                next = shown.next(kind);
                // The requester wrote the input, and the worker the output.
                if is_requester == (kind == Part::Output) {
                    untrusted.push("/part/text");
                }
            }
        } else if let Some(output) = output_of(job) {
            if part::is_long(output) {
                let shown = part::cut_part(output, 0);
                view = view.raw("part", &shown.write(Part::Output));
                next = shown.next(Part::Output);
                untrusted.push("/part/text");
            } else {
                view = view.raw("output", &as_object(output));
                untrusted.push("/output");
            }
        }
        if let Some(error) = ended_error(job, false) {
            view = view.text("error", &error.sentence());
            if error.said.is_some() {
                untrusted.push("/error");
            }
        }
        let offers = newest_offers(job, viewer);
        if !offers.is_empty() {
            view = view.raw("offers", &write_offers(context, &offers));
        }
        if self.repeated {
            view = view.flag("repeated", true);
        }
        let next = self.next.or(next).or_else(|| next_step(job, is_requester, !offers.is_empty()));
        let view = view.maybe_text("next", next.as_deref());
        if !is_requester {
            untrusted.retain(|pointer| *pointer != "/output" && *pointer != "/error");
        }
        ToolOutput::new(view.finish()).untrusted(&untrusted)
    }
}

/// What every view of a job begins with.
fn head(world: &World, job: &Job, is_requester: bool) -> ObjectWriter {
    let price = job.assignment.filter(|turn| !turn.price_open).map(|turn| turn.price);
    let amount = |amount: Credits| amount.to_text(DECIMALS);
    let budget = is_requester.then(|| amount(job.payment.budget));
    let paid = job.state.is_final().then(|| amount(paid_of(job)));
    ObjectWriter::new()
        .uuid("job_id", job.uuid)
        .text("state", shown_state(job))
        .flag("done", job.state.is_final())
        .text("skill", &job.request.skill)
        .maybe_text("agent", job.worker().map(|id| address_of(world, id)).as_deref())
        .maybe_text("price", price.map(amount).as_deref())
        .maybe_text("budget", budget.as_deref())
        .maybe_text("paid", paid.as_deref())
        .time("deadline", job.request.deadline)
}

/// One line of a list of jobs.
pub fn write_summary(world: &World, job: &Job) -> String {
    let price = job.assignment.filter(|turn| !turn.price_open).map(|turn| turn.price);
    let paid = job.state.is_final().then(|| paid_of(job));
    let text = |amount: Option<Credits>| amount.map(|amount| amount.to_text(DECIMALS));
    ObjectWriter::new()
        .uuid("job_id", job.uuid)
        .text("state", shown_state(job))
        .flag("done", job.state.is_final())
        .text("skill", &job.request.skill)
        .maybe_text("agent", job.worker().map(|id| address_of(world, id)).as_deref())
        .maybe_text("price", text(price).as_deref())
        .maybe_text("paid", text(paid).as_deref())
        .time("opened_at", job.request.opened_at)
        .finish()
}

/// What was paid for a job.
pub fn paid_of(job: &Job) -> Credits {
    job.result.as_ref().map_or(Credits::ZERO, |result| result.paid)
}

/// The output of a job that completed.
fn output_of(job: &Job) -> Option<&str> {
    let completed = job.result.as_ref().filter(|_| job.state == State::Completed);
    completed.and_then(|result| result.output.as_deref())
}

/// Outputs are objects wherever a schema is declared; other JSON stands in one.
fn as_object(output: &str) -> String {
    match output.trim_start().starts_with('{') {
        true => output.to_owned(),
        false => ObjectWriter::new().raw("value", output).finish(),
    }
}

/// Why a job ended without success, if it did.
pub fn ended_error(job: &Job, repeated: bool) -> Option<ToolError> {
    let (code, word) = match job.state {
        State::Failed => ("job_failed", "failed"),
        State::Expired => ("job_expired", "expired"),
        State::Cancelled | State::Withdrawn => ("job_cancelled", "was cancelled"),
        _ => return None,
    };
    let result = job.result.as_ref();
    let cause = result.and_then(|result| result.cause).map(cause_name);
    let cause = cause.map(|cause| format!(" ({})", cause.replace('_', " "))).unwrap_or_default();
    let paid = match paid_of(job) {
        Credits::ZERO => "nothing was paid".to_owned(),
        paid => format!("{} was paid", paid.to_text(DECIMALS)),
    };
    let mut error = ToolError::of(code, format!("job {} {word}{cause}; {paid}", job.uuid));
    if repeated {
        error = error.with_advice(
            "; this is the job of an earlier call, so pass another idempotency_key to try again",
        );
    }
    match result.and_then(|result| result.text.clone()).filter(|text| !text.is_empty()) {
        Some(said) => Some(error.with_words(said)),
        None => Some(error),
    }
}

/// The newest offer of each agent, the cheapest first.
pub fn newest_offers(job: &Job, viewer: AgentId) -> Vec<&Offer> {
    if job.state != State::Negotiating {
        return Vec::new();
    }
    let mut newest: Vec<&Offer> = Vec::new();
    for (_, offer) in visible_offers(job, viewer) {
        newest.retain(|known| known.by != offer.by);
        newest.push(offer);
    }
    newest.sort_by_key(|offer| (offer.price, offer.at));
    newest.truncate(OFFERS_SHOWN);
    newest
}

fn write_offers(context: &HubContext, offers: &[&Offer]) -> String {
    let write = |world: &World, offer: &Offer| {
        ObjectWriter::new()
            .text("agent", &address_of(world, offer.by))
            .text("price", &offer.price.to_text(DECIMALS))
            .time("valid_until", offer.valid_until)
            .finish()
    };
    let shown: Vec<String> =
        context.engine.with_world(|world| offers.iter().map(|offer| write(world, offer)).collect());
    json_array(shown)
}

/// What to call now.
fn next_step(job: &Job, is_requester: bool, has_offers: bool) -> Option<String> {
    let wait = || format!(r#"get_job with {{"job_id":"{}","wait_seconds":50}}"#, job.uuid);
    Some(match job.state {
        state if state.is_final() => return None,
        _ if !is_requester => return None,
        State::Negotiating if has_offers => format!(
            "choose an offer and call accept_offer with its agent and price; for more offers, {}",
            wait()
        ),
        State::Negotiating => format!("agents are asked for offers; wait for them: {}", wait()),
        State::InputRequired { .. } => {
            "the agent asks a question: read it with read_inbox, and answer \
                                        it with send_message and reply_to = its position"
                .to_owned()
        }
        _ => format!("not done yet; go on with {}", wait()),
    })
}
