//! The agents that hire others: the Reader, the Editor and the Newsstand. Each searches the lists of its
//! own protocol, which show agents of other protocols under their aliases.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rialto_client::openclaw::{
    Agent, AgentFilter, Category, Decision, Handler, Job, ListedAgent, PresenceOptions, Profile,
    Request, RequestEnd, RequestSpec, ResponseAnswer, ResultOutcome, ServeError, ServeOptions,
    Server, Skill, Timestamp, WorkError, WorkHistory,
};
use rialto_client::{CallError, clara};
use rialto_core::money::Credits;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::agents::{self, AgentRunner, Reporter, role_of_alias};
use super::plan::ActionKind::*;
use super::plan::{self, Role};
use crate::commands::V1;
use crate::commands::time::now;
use crate::commands::v1::{format_amount, parse_amount, parse_json, unreadable};

/// How often the Reader polls for its bulletin.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the Editor defers its first job.
const DEFER_TIME: Duration = Duration::from_secs(1);
/// How long a requester waits for a result. The scenario has a shorter timeout, and its error names
/// the missing step.
const RESULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The Reader: a client of a2a that orders a bulletin and pays for it.
pub struct Reader {
    /// A client for the hub, with the Reader's key.
    pub api: V1,
    /// Its name in a2a.
    pub name: String,
}

/// The bulletin the Reader ordered.
pub struct Bulletin {
    /// The task, which is the hub's id of the job.
    pub job: String,
    pub text: Value,
}

impl Reader {
    pub async fn register(runner: &AgentRunner) -> Result<Self, CallError> {
        let name = Role::Reader.name().to_lowercase();
        let hub = runner.api()?.0;
        let agent = hub.post("/a2a/agents", &json!({"name": name})).await?;
        let api = V1(hub.with_key(text_at(&agent, "/api_key")?));
        Ok(Self { api, name })
    }

    /// Hires the Editor and waits for the bulletin.
    pub async fn request_bulletin(&self, runner: &AgentRunner) -> Result<Bulletin, CallError> {
        let reporter = runner.reporter(Role::Reader);
        let before = self.api.me().await?.account.balance()?;
        let page = self.api.0.get("/a2a/agents?skill=write_bulletin").await?;
        let editor = text_at(&page, "/agents/0/name")?;
        let price = format_amount(plan::BULLETIN_PRICE);
        let text =
            format!("hires Editor for a bulletin at {price}: the credits are held, not yet paid");
        reporter.action(Hires, Some(Role::Editor), Some(plan::BULLETIN_PRICE), text);
        let job = self.send(editor, &price).await?;
        reporter.activity("waits for its bulletin");
        let bulletin = self.result(editor, &job).await?;
        let after = self.api.me().await?.account.balance()?;
        let paid = before.available.checked_pay(after.available).unwrap_or_default();
        let text = format!("gets its bulletin and pays {}", format_amount(paid));
        reporter.action(Pays, Some(Role::Editor), Some(paid), text);
        Ok(Bulletin { job, text: bulletin })
    }

    /// Sends the message that opens the task.
    async fn send(&self, editor: &str, price: &str) -> Result<String, CallError> {
        let hire = json!({"urn:rialto:a2a:hire:v1": {"skill": "write_bulletin", "budget": price}});
        let body = json!({
            "message": {
                "messageId": "bulletin-1",
                "role": "ROLE_USER",
                "parts": [{"data": {"about": "bridges"}}],
                "metadata": hire,
            },
            "configuration": {"returnImmediately": true},
        });
        let answer = self.api.0.post(&format!("/a2a/agents/{editor}/message:send"), &body).await?;
        text_at(&answer, "/task/id").map(str::to_owned)
    }

    async fn result(&self, editor: &str, task: &str) -> Result<Value, CallError> {
        let path = format!("/a2a/agents/{editor}/tasks/{task}");
        loop {
            let mut task = self.api.0.get(&path).await?;
            match text_at(&task, "/status/state")? {
                "TASK_STATE_COMPLETED" => {
                    let output = task.pointer_mut("/artifacts/0/parts/0/data").map(Value::take);
                    return output.ok_or_else(|| unreadable(format!("no bulletin in {task}")));
                }
                "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" => sleep(POLL_INTERVAL).await,
                _ => return Err(unreadable(format!("the task has no bulletin: {task}"))),
            }
        }
    }
}

/// The text at a place of a JSON document.
fn text_at<'a>(json: &'a Value, pointer: &str) -> Result<&'a str, CallError> {
    let text = json.pointer(pointer).and_then(Value::as_str);
    text.ok_or_else(|| unreadable(format!("no {pointer} in {json}")))
}

/// The Editor: an agent of openclaw that accepts jobs itself and hires all the others for its job.
struct Editor {
    agent: Agent,
    /// A client for the hub, with the Editor's key.
    api: V1,
    reporter: Reporter,
    has_deferred: AtomicBool,
}

pub async fn start_editor(runner: &mut AgentRunner) -> Result<String, CallError> {
    let skill = Skill::new("write_bulletin", Category::ContentGeneration, "Writes a bulletin");
    let identity = Profile::new("chimera-editor")
        .skill(skill.price(plan::BULLETIN_PRICE))
        .respond_manually()
        .build()?;
    let published = Server::new(&runner.url)?.publish(&identity).await?;
    let key = published.key.ok_or_else(|| unreadable("no key"))?;
    let handler = Editor {
        agent: published.agent.clone(),
        api: V1(runner.api()?.0.with_key(key.reveal())),
        reporter: runner.reporter(Role::Editor),
        has_deferred: AtomicBool::new(false),
    };
    let id = format!("openclaw:{}", identity.agent_id);
    runner.spawn(Role::Editor, async move {
        let agent = published.agent;
        let online = agent.go_online(PresenceOptions::default(), WorkHistory::default());
        let options = ServeOptions::from_identity(&identity);
        online.serve(options, Arc::new(handler), pending()).await
    });
    Ok(id)
}

impl Handler for Editor {
    async fn decide(&self, _: &Request) -> Decision {
        if !self.has_deferred.swap(true, Ordering::Relaxed) {
            let text = "defers: \"ask me again in a second\"";
            self.reporter.action(Defers, Some(Role::Reader), None, text);
            let pause = i64::try_from(DEFER_TIME.as_millis()).unwrap_or(i64::MAX);
            return Decision::Defer { until: Timestamp(now().0 + pause) };
        }
        self.reporter.action(Accepts, Some(Role::Reader), None, "is asked again, and accepts");
        Decision::Accept { estimated_completion: None }
    }

    async fn work(&self, _: Job) -> Result<String, WorkError> {
        let bulletin = self.write_bulletin().await.map_err(|error| {
            self.reporter.failure(&error);
            WorkError::permanent("NO_BULLETIN", error.to_string())
        })?;
        self.reporter.action(Delivers, Some(Role::Reader), None, "delivers the bulletin");
        Ok(bulletin)
    }

    fn on_error(&self, error: &ServeError) {
        self.reporter.warning(error.action, &error.reason);
    }
}

impl Editor {
    /// Hires others to find, check, translate and announce the news.
    async fn write_bulletin(&self) -> Result<String, CallError> {
        let topic = json!({"about": "bridges"});
        let news = self.hire("find_news", topic, plan::NEWS_BUDGET).await?;
        let headline = news["headline"].as_str().unwrap_or_default();
        let claim = json!({"claim": headline});
        let check = self.hire("check_facts", claim, plan::SECOND_CHECK_PRICE).await?;
        let french = self.hire("message", json!({"text": headline}), Credits::ZERO).await?;
        let news = json!({"news": headline});
        let announcement = self.hire("clara.discord", news, plan::ANNOUNCEMENT_PRICE).await?;
        let bulletin = json!({"headline": headline, "is_so": check["is_so"],
            "in_french": french["text"], "cried_by": announcement["cried_by"]});
        Ok(bulletin.to_string())
    }

    /// Hires the cheapest agent with the skill; if it fails, the next one. An agent that lists no
    /// price is paid at most the bid.
    async fn hire(&self, skill: &str, input: Value, bid: Credits) -> Result<Value, CallError> {
        let filter = AgentFilter { capability: Some(skill.to_owned()), ..AgentFilter::default() };
        let mut candidates = Vec::new();
        for listed in &self.agent.server().agents(&filter).await? {
            let id = listed.entry.agent_id;
            let role = role_of_alias(&self.api, "openclaw", &id.to_string()).await?;
            candidates.push((listed_price(listed, skill).unwrap_or(bid), role, id));
        }
        candidates.sort_by_key(|(max_price, ..)| *max_price);
        for (max_price, role, id) in candidates {
            let request = RequestSpec::new(skill, &input.to_string()).to(id).budget(max_price);
            if let Some(output) = self.hire_agent(skill, request, max_price, role).await? {
                return Ok(output);
            }
        }
        Err(unreadable(format!("no other agent has the skill {skill}")))
    }

    /// Hires one agent; `None` if it failed, in which case nothing was paid.
    async fn hire_agent(
        &self,
        skill: &str,
        request: RequestSpec,
        max_price: Credits,
        role: Role,
    ) -> Result<Option<Value>, CallError> {
        let before = self.api.me().await?.account.balance()?;
        let price = if max_price.is_zero() {
            "free".to_owned()
        } else {
            format!("at most {}", format_amount(max_price))
        };
        let text = format!("hires {role} ({}): {skill}, {price}", role.protocol());
        self.reporter.action(Hires, Some(role), Some(max_price), text);
        let reply = self.agent.request(&request).await?;
        // No agent of the demo refuses the Editor.
        if let ResponseAnswer::Rejected(why) = &reply.response.answer {
            return Err(unreadable(&why.message));
        }
        self.reporter.activity(format!("waits for {role}"));
        let end = self.agent.result(reply.pending(), RESULT_TIMEOUT).await?;
        let after = self.api.me().await?.account.balance()?;
        let paid = before.total().checked_pay(after.total()).unwrap_or_default();
        let output = output(end)?;
        if output.is_some() {
            let price = if paid.is_zero() { "nothing".to_owned() } else { format_amount(paid) };
            let text = format!("gets the result of {role} and pays {price}");
            self.reporter.action(Pays, Some(role), Some(paid), text);
        } else {
            let back = max_price.checked_pay(paid).unwrap_or_default();
            let text = format!("gets back all {} held for {role}", format_amount(back));
            self.reporter.action(Refunded, Some(role), Some(back), text);
        }
        Ok(output)
    }
}

/// The listed price of a skill. An agent that prices by offer lists zero.
fn listed_price(agent: &ListedAgent, skill: &str) -> Option<Credits> {
    let all = &agent.entry.capabilities.advertised_capabilities;
    let price = all.iter().find(|offered| offered.capability_id == skill)?.price.as_ref()?;
    parse_amount(price).ok().filter(|price| !price.is_zero())
}

/// The output; `None` if the job failed.
fn output(end: RequestEnd) -> Result<Option<Value>, CallError> {
    match end {
        RequestEnd::Result(message) => match message.body.outcome {
            ResultOutcome::Completed { output_data } => parse_json(&output_data).map(Some),
            ResultOutcome::Failed(_) => Ok(None),
            ResultOutcome::Cancelled { .. } => Err(unreadable("it was cancelled")),
        },
        RequestEnd::Rejected(why) => Err(unreadable(why.message)),
        RequestEnd::Withdrawn => Err(unreadable("it was cancelled")),
        RequestEnd::Pending(state) => {
            Err(CallError::TimedOut { url: format!("job in state {state}") })
        }
    }
}

/// The Newsstand: an agent of clara that is hired and hires others by a sealed auction.
struct Newsstand {
    account: clara::MarketClient,
    api: V1,
    reporter: Reporter,
}

pub async fn start_newsstand(runner: &mut AgentRunner) -> Result<String, CallError> {
    let (role, fee) = (Role::Newsstand, plan::ANNOUNCEMENT_PRICE);
    let account = agents::new_account(runner, role, "discord", fee).await?;
    let (api, reporter) = (runner.api()?, runner.reporter(role));
    let handler = Newsstand { account: account.clone(), api, reporter };
    Ok(agents::serve_market(runner, role, account, handler))
}

impl clara::Handler for Newsstand {
    async fn price(&self, _: &clara::Query) -> Option<Credits> {
        Some(plan::ANNOUNCEMENT_PRICE)
    }

    async fn work(&self, task: clara::Task) -> Result<String, clara::WorkError> {
        let text = format!("finds the task in its inbox, for {}", format_amount(task.reward));
        self.reporter.action(Accepts, Some(Role::Editor), None, text);
        let crier = self.auction(&task.payload).await.map_err(|error| {
            self.reporter.failure(&error);
            clara::WorkError::new(error.to_string())
        })?;
        let text = format!("delivers: {crier} announced the news");
        self.reporter.action(Delivers, Some(Role::Editor), None, text);
        Ok(json!({"cried_by": crier.name()}).to_string())
    }

    fn on_error(&self, error: &ServeError) {
        self.reporter.warning(error.action, &error.reason);
    }
}

impl Newsstand {
    /// Auctions the announcement and returns the winner.
    async fn auction(&self, news: &str) -> Result<Role, CallError> {
        let before = self.account.balance().await?;
        let budget = plan::AUCTION_BUDGET;
        let text = format!(
            "posts a sealed auction: who announces the news, for at most {}?",
            format_amount(budget)
        );
        self.reporter.action(Auctions, None, Some(budget), text);
        let task = clara::TaskSpec::new(agents::TOPIC, budget, news)
            .strategy(clara::Strategy::Query)
            .as_agent(Role::Newsstand.name());
        let mut pending = self.account.register_task(&task).await?;
        let clara::TaskEnd::Done(outcome) = pending.next(RESULT_TIMEOUT).await? else {
            return Err(unreadable("no agent announced the news"));
        };
        let crier = role_of_alias(&self.api, "clara", &outcome.agent_id).await?;
        let paid = before.checked_pay(self.account.balance().await?).unwrap_or_default();
        let text = format!("pays {} to {crier}, the lowest bidder", format_amount(paid));
        self.reporter.action(Pays, Some(crier), Some(paid), text);
        Ok(crier)
    }
}
