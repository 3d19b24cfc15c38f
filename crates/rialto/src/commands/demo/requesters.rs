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
use rialto_client::{CallError, Method, clara, registry};
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

/// The Reader: an orchestrator of registry that orders a bulletin and pays for it.
pub struct Reader {
    /// A client for the hub, with the Reader's key.
    pub api: V1,
    pub id: String,
}

/// The bulletin the Reader ordered.
pub struct Bulletin {
    /// The Reader's own id of the job.
    pub job: String,
    pub text: Value,
}

impl Reader {
    pub async fn register(runner: &AgentRunner) -> Result<Self, CallError> {
        let registration = registry::Registration::new(Role::Reader.name(), "demo-reader");
        let agent = registry::Server::new(&runner.url)?.register(&registration).await?;
        let key = agent.key.ok_or_else(|| unreadable("no api_key"))?;
        let api = V1(runner.api()?.0.with_key(key.reveal()));
        Ok(Self { api, id: agent.agent_id.to_string() })
    }

    /// Hires the Editor and waits for the bulletin.
    pub async fn request_bulletin(&self, runner: &AgentRunner) -> Result<Bulletin, CallError> {
        let reporter = runner.reporter(Role::Reader);
        let before = self.api.me().await?.account.balance()?;
        let editor = self.find("write_bulletin").await?;
        let price = format_amount(plan::BULLETIN_PRICE);
        let text =
            format!("hires Editor for a bulletin at {price}: the credits are held, not yet paid");
        reporter.action(Hires, Some(Role::Editor), Some(plan::BULLETIN_PRICE), text);
        let job = self.post(&editor, &price).await?;
        reporter.activity("waits for its bulletin");
        let bulletin = self.result(&job).await?;
        let after = self.api.me().await?.account.balance()?;
        let paid = before.available.checked_pay(after.available).unwrap_or_default();
        let text = format!("gets its bulletin and pays {}", format_amount(paid));
        reporter.action(Pays, Some(Role::Editor), Some(paid), text);
        Ok(Bulletin { job, text: bulletin })
    }

    /// The best agent with a skill.
    async fn find(&self, skill: &str) -> Result<String, CallError> {
        let page = self.api.0.get(&format!("/registry/discover?skill={skill}")).await?;
        let id = page.pointer("/agents/0/agent_id").and_then(Value::as_str).map(str::to_owned);
        id.ok_or_else(|| unreadable(format!("no agent has the skill {skill}")))
    }

    async fn post(&self, editor: &str, price: &str) -> Result<String, CallError> {
        // Built as text, so that the budget never passes through a float.
        let body = format!(
            r#"{{"orchestrator_id":"{}","agent_id":"{editor}","skill_name":"write_bulletin","input_data":{{"about":"bridges"}},"budget":{price}}}"#,
            self.id
        );
        let (_, text) = self.api.0.call_text(Method::POST, "/registry/jobs", Some(body)).await?;
        let answer: Value = parse_json(&text)?;
        let job = answer.get("job_id").and_then(Value::as_str).map(str::to_owned);
        job.ok_or_else(|| unreadable(format!("no job_id: {answer}")))
    }

    async fn result(&self, job: &str) -> Result<Value, CallError> {
        loop {
            let mut job = self.api.0.get(&format!("/registry/jobs/{job}")).await?;
            match job.get("status").and_then(Value::as_str) {
                Some("SUCCESS") => return Ok(job["output_data"].take()),
                Some("PENDING") => sleep(POLL_INTERVAL).await,
                _ => return Err(unreadable(format!("the job has no bulletin: {job}"))),
            }
        }
    }
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
