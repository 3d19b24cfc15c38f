//! The operations of the message unit and the compute unit, and their handlers. The message unit
//! reads an item, verifies its signature, executes it once, and then acknowledges it.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rialto_core::alias::claim;
use rialto_core::command::{Command, JobRef};
use rialto_core::envelope::{Envelope, MarketSubmission};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::ClaraContext;
use super::errors::from_engine;
use super::record_writer::{OrderRecord, OrderReply, answer_result};
use super::translate::{OrderPlan, PlanError, plan_order};
use super::wire::api_doc::*;
use super::wire::message::{read_assign, read_dry_run, read_process};
use super::wire::result::{
    assignment_accepted_body, message_accepted_body, monitor_body, overview_body,
};
use super::{Dialect, Failure, ID, IncomingMessage, Paging, auth, results};
use crate::adapter::Access::{Public, Signed};
use crate::adapter::open_job::set_job_header;
use crate::adapter::operation::{delete, get, post};
use crate::adapter::peer::Peer;
use crate::adapter::request::{BodyBytes, PathParam};
use crate::adapter::{Operation, RowsRead};
use crate::kit::ans104::{Item, ItemId};

/// The most dry-runs decided at the same time; more wait.
static DRY_RUNS: Semaphore = Semaphore::const_new(2);

/// A message that only reads.
const DRY_RUN_EXAMPLE: &str = r#"{"Tags":[{"name":"Action","value":"List-Agents"}]}"#;

/// Every operation is served under its unit's name and directly under the prefix. Clients whose
/// base URL ends in a slash send two slashes, so those paths are served, too.
pub fn operations() -> Vec<Operation<ClaraContext>> {
    vec![
        get("", Public, overview)
            .summary("Show the process id and the paths of its units")
            .as_is()
            .responds::<Overview>(200, "The process"),
        post("", Signed, post_item)
            .summary("Post a signed message")
            .query::<AssignQuery>()
            .binary_request::<DataItem>()
            .responds::<Accepted>(202, "The message is evaluated and stored"),
        post("/mu", Signed, post_item)
            .summary("Post a signed message")
            .query::<AssignQuery>()
            .binary_request::<DataItem>()
            .responds::<Accepted>(202, "The message is evaluated and stored"),
        post("/mu/monitor/{process}", Public, monitor)
            .summary("Accepted for compatibility; has no effect")
            .as_is()
            .path_param::<ProcessParam>()
            .responds::<Monitored>(200, "Nothing was to be done"),
        delete("/mu/monitor/{process}", Public, monitor)
            .summary("Accepted for compatibility; has no effect")
            .as_is()
            .path_param::<ProcessParam>()
            .responds::<Monitored>(200, "Nothing was to be done"),
        post("/monitor/{process}", Public, monitor)
            .summary("Accepted for compatibility; has no effect")
            .as_is()
            .path_param::<ProcessParam>()
            .responds::<Monitored>(200, "Nothing was to be done"),
        delete("/monitor/{process}", Public, monitor)
            .summary("Accepted for compatibility; has no effect")
            .as_is()
            .path_param::<ProcessParam>()
            .responds::<Monitored>(200, "Nothing was to be done"),
        get("/cu/result/{message}", Public, get_result)
            .summary("Get the result of a message")
            .path_param::<MessageParam>()
            .query::<ProcessQuery>()
            .responds::<MessageResult>(200, "The result"),
        get("/result/{message}", Public, get_result)
            .summary("Get the result of a message")
            .path_param::<MessageParam>()
            .query::<ProcessQuery>()
            .responds::<MessageResult>(200, "The result"),
        get("/cu/results/{process}", Public, list_results)
            .summary("List results page by page")
            .path_param::<ProcessParam>()
            .query::<ResultsQuery>()
            .responds::<ResultPage>(200, "A page of results"),
        get("/results/{process}", Public, list_results)
            .summary("List results page by page")
            .path_param::<ProcessParam>()
            .query::<ResultsQuery>()
            .responds::<ResultPage>(200, "A page of results"),
        post("/cu/dry-run", Public, dry_run)
            .summary("Evaluate a message without storing it")
            .query::<ProcessQuery>()
            .request::<DryRunMembers>(DRY_RUN_EXAMPLE)
            .responds::<MessageResult>(200, "The result"),
        post("/dry-run", Public, dry_run)
            .summary("Evaluate a message without storing it")
            .query::<ProcessQuery>()
            .request::<DryRunMembers>(DRY_RUN_EXAMPLE)
            .responds::<MessageResult>(200, "The result"),
    ]
}

/// The return type of a handler.
type HandlerResult = Result<Response, Failure>;

/// JSON text as a response.
pub fn json_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}

/// The dialect of a process that the market answers to.
fn find_dialect(context: &ClaraContext, process: Option<ItemId>) -> Result<Dialect, Failure> {
    let dialect = process.and_then(|process| context.state.processes.dialect(process));
    dialect.ok_or_else(Failure::unknown_process)
}

/// `POST /mu`: a signed item, or with a query the assignment of a known message.
async fn post_item(
    State(context): State<ClaraContext>,
    Peer(peer): Peer,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    if let Some(assign) = read_assign(raw.as_deref().unwrap_or_default())? {
        return assigned(&context, assign.message, assign.process).await;
    }
    let accepted = accept_item(&context, body, peer).await?;
    let mut answer = json_response(202, message_accepted_body(&accepted.id));
    set_job_header(&mut answer, accepted.job);
    Ok(answer)
}

/// A known message can only be assigned to the process it was sent to.
async fn assigned(context: &ClaraContext, message: ItemId, process: ItemId) -> HandlerResult {
    find_dialect(context, Some(process))?;
    let known = context.engine.claim_target(claim::market_order(ID, &message.to_string())).await;
    match known.map_err(from_engine)? {
        Some(_) => Ok(json_response(202, assignment_accepted_body(message))),
        None => Err(Failure::unknown_message()),
    }
}

/// `POST` and `DELETE /mu/monitor/{process}`: no effect, because every process here runs by itself.
async fn monitor(
    State(context): State<ClaraContext>,
    PathParam(process): PathParam,
) -> HandlerResult {
    find_dialect(&context, ItemId::read(&process))?;
    Ok(json_response(200, monitor_body()))
}

/// `GET /clara`: the market's process id and the paths of its units.
async fn overview(State(context): State<ClaraContext>) -> HandlerResult {
    Ok(json_response(200, overview_body(context.state.processes.spec)))
}

/// An item that was accepted.
struct AcceptedItem {
    id: String,
    /// The hub's id of the job that the item opened, if any. With many copies, that of the first.
    job: Option<Uuid>,
}

/// Accepts an item.
async fn accept_item(
    context: &ClaraContext,
    body: Bytes,
    peer: Option<SocketAddr>,
) -> Result<AcceptedItem, Failure> {
    let item = Item::read(&body)?;
    let message = IncomingMessage { item: Some(&body), ..IncomingMessage::of(&item)? };
    let dialect = find_dialect(context, Some(message.target))?;
    auth::verify_item(&context.state, &item, &body).await?;
    auth::count_message(context, &message.from, peer)?;
    let plan = plan(context, &message, dialect).await?;
    let opens = matches!(plan.command, Command::OpenJob(_));
    let id = message.id.into_owned();
    let order = market_order(id.clone(), message.from.into_owned(), plan, true);
    context.engine.run(order).await.map_err(from_engine)?;
    let job = if opens { opened(context, id.clone()).await? } else { None };
    Ok(AcceptedItem { id, job })
}

/// The market order of a plan. A dry-run is not stored.
fn market_order(id: String, from: String, plan: OrderPlan, is_stored: bool) -> Envelope {
    let OrderPlan { command, reply, registration } = plan;
    let reply = OrderRecord { from, reply, is_stored }.to_json();
    Envelope::for_market(MarketSubmission { market: ID, id, registration, reply }, command)
}

/// The job that an item opened, now or when it first arrived.
async fn opened(context: &ClaraContext, id: String) -> Result<Option<Uuid>, Failure> {
    let name = JobRef::Foreign { origin: ID, id };
    let job = context.engine.find_job(&name).await.map_err(from_engine)?;
    Ok(job.map(|job| job.uuid))
}

/// `GET /cu/result/{id}?process-id=`.
async fn get_result(
    State(context): State<ClaraContext>,
    PathParam(id): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let process = read_process(raw.as_deref().unwrap_or_default())?;
    find_dialect(&context, Some(process))?;
    let found = results::message_result(&context, &id).await.map_err(from_engine)?;
    found.map(|found| json_response(200, found)).ok_or_else(Failure::unknown_message)
}

/// `GET /cu/results/{process}`.
async fn list_results(
    State(context): State<ClaraContext>,
    PathParam(process): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    find_dialect(&context, ItemId::read(&process))?;
    let paging = Paging::read(raw.as_deref().unwrap_or_default())?;
    let page = results::results_page(&context, &paging).await;
    let (page, looked_at) = page.map_err(from_engine)?;
    let mut answer = json_response(200, page);
    answer.extensions_mut().insert(RowsRead(looked_at));
    Ok(answer)
}

/// `POST /cu/dry-run?process-id=`.
async fn dry_run(
    State(context): State<ClaraContext>,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let raw = raw.unwrap_or_default();
    Ok(json_response(200, evaluate_dry_run(&context, &raw, &body).await?))
}

/// Evaluates a message without storing it: decided like any other, then discarded (R19).
async fn evaluate_dry_run(
    context: &ClaraContext,
    raw: &str,
    body: &[u8],
) -> Result<String, Failure> {
    let process = read_process(raw)?;
    let dialect = find_dialect(context, Some(process))?;
    let json = read_dry_run(body)?;
    let message = IncomingMessage::dry_run(&json, process)?;
    let Ok(_turn) = DRY_RUNS.acquire().await else { return Err(Failure::internal("dry-run")) };
    let plan = plan(context, &message, dialect).await?;
    // A read-only order needs no decision, so it is answered directly.
    if let (Command::RecordOnly, OrderReply::Answer { messages, .. }) = (&plan.command, &plan.reply)
    {
        let first = context.engine.with_world(|world| world.next.market_messages);
        return Ok(answer_result(messages, first));
    }
    // An id that no item can have.
    let id = format!("dry-run {}", context.engine.random().new_uuid());
    let order = market_order(id, message.from.to_string(), plan, false);
    // The cost of the decision depends on the number of agents, so it runs on the blocking pool.
    let context = context.clone();
    let decide = move || {
        let now = context.engine.now();
        let decided = context.engine.with_world(|world| rialto_core::decide(world, order, now));
        let (changes, _) = decided.map_err(|refusal| from_engine(refusal.into()))?;
        let text = changes.market_records.first().map(|posting| posting.text.clone());
        text.ok_or_else(|| Failure::internal("dry-run"))
    };
    let decided = tokio::task::spawn_blocking(decide).await;
    decided.unwrap_or_else(|_| Err(Failure::internal("dry-run")))
}

/// Plans the order of a message. An invalid order is recorded with its error.
async fn plan(
    context: &ClaraContext,
    message: &IncomingMessage<'_>,
    dialect: Dialect,
) -> Result<OrderPlan, Failure> {
    match plan_order(context, message, dialect).await {
        Err(PlanError::Order(error)) => Ok(OrderPlan::new(Command::RecordOnly, error.into())),
        Err(PlanError::Engine(failure)) => Err(from_engine(failure)),
        Ok(plan) => Ok(plan),
    }
}
