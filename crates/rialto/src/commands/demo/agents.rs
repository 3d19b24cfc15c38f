//! The demo's agents, each with its own protocol's client and its own task. Those that hire others are
//! in `requesters`.
//!
//! No agent knows what the others do.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rialto_client::{CallError, Hub};
use rialto_client::{agora, clara, registry, relay};
use rialto_core::money::Credits;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::plan::ActionKind::{self, *};
use super::plan::{self, Event, Role};
use super::requesters;
use crate::commands::V1;
use crate::commands::v1::{Amount, format_amount, unreadable};

/// How long a job takes: long enough to be visible.
pub const WORK_TIME: Duration = Duration::from_millis(250);
/// How long an offer is valid.
const OFFER_TTL: Duration = Duration::from_secs(60);
/// How long a poll without jobs is held open by the hub, in seconds.
const FETCH_SECONDS: u8 = 25;
/// The topic of the Crier and the Herald; the Courier's `agora:tweet:v1` is the same in this market.
pub const TOPIC: &str = "tweet";
/// The Polyglot's culture, and its French vocabulary.
const CULTURE: &str = "fr";
const WORDS: [(&str, &str); 4] =
    [("the", "le"), ("bridge", "pont"), ("is", "est"), ("open", "ouvert")];

/// The hub's id of each role, such as `agora:did:key:z6Mk…`.
pub type AgentIds = BTreeMap<Role, String>;

/// A report of an agent.
#[derive(Debug)]
pub enum AgentUpdate {
    Event(Event),
    /// What an agent is currently doing.
    Activity(Role, String),
    /// An error that may be temporary: agents retry.
    Warning(Role, String),
    /// An agent cannot continue.
    Failed(Role, String),
}

/// Reports what one agent does. Reports of concurrent agents stay in order.
#[derive(Clone, Debug)]
pub struct Reporter {
    role: Role,
    updates: mpsc::UnboundedSender<AgentUpdate>,
    start: Instant,
}

impl Reporter {
    /// Reports an action.
    pub fn action(
        &self,
        kind: ActionKind,
        with: Option<Role>,
        amount: Option<Credits>,
        text: impl Into<String>,
    ) {
        let at_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (role, protocol, text) = (self.role, self.role.protocol(), text.into());
        let amount = amount.map(Amount);
        self.send(AgentUpdate::Event(Event { at_ms, role, protocol, kind, with, amount, text }));
    }

    /// Reports what the agent is doing.
    pub fn activity(&self, text: impl Into<String>) {
        self.send(AgentUpdate::Activity(self.role, text.into()));
    }

    /// Reports a temporary error.
    pub fn warning(&self, action: &str, why: &str) {
        self.send(AgentUpdate::Warning(self.role, format!("{action}: {why}")));
    }

    /// Reports that the agent cannot continue.
    pub fn failure(&self, error: &CallError) {
        self.send(AgentUpdate::Failed(self.role, error.to_string()));
    }

    fn send(&self, update: AgentUpdate) {
        // A closed channel means that the demo has ended.
        let _ = self.updates.send(update);
    }
}

/// Starts the agents. All of them stop when this is dropped.
pub struct AgentRunner {
    pub url: String,
    updates: mpsc::UnboundedSender<AgentUpdate>,
    start: Instant,
    tasks: JoinSet<()>,
}

impl AgentRunner {
    /// A runner, and the reports of its agents. The demo is short, so the channel needs no limit.
    pub fn new(url: &str) -> (Self, mpsc::UnboundedReceiver<AgentUpdate>) {
        let (updates, receiver) = mpsc::unbounded_channel();
        let (url, start) = (url.to_owned(), Instant::now());
        (Self { url, updates, start, tasks: JoinSet::new() }, receiver)
    }

    pub fn reporter(&self, role: Role) -> Reporter {
        Reporter { role, updates: self.updates.clone(), start: self.start }
    }

    /// Starts all agents except the Reader; they begin to listen for jobs.
    pub async fn start_all(&mut self) -> Result<AgentIds, CallError> {
        let mut ids = AgentIds::new();
        ids.insert(Role::Editor, requesters::start_editor(self).await?);
        ids.insert(Role::Polyglot, start_polyglot(self).await?);
        ids.insert(Role::Newsstand, requesters::start_newsstand(self).await?);
        for bidder in [SCOUT, COURIER] {
            ids.insert(bidder.role, start_bidder(self, bidder).await?);
        }
        for role in [Role::Checker, Role::Verifier] {
            ids.insert(role, start_checker(self, role).await?);
        }
        for role in [Role::Crier, Role::Herald] {
            let account = new_account(self, role, TOPIC, plan::HERALD_BID).await?;
            let handler = AuctionHandler { role, reporter: self.reporter(role) };
            ids.insert(role, serve_market(self, role, account, handler));
        }
        Ok(ids)
    }

    /// A client for the hub, without a key.
    pub fn api(&self) -> Result<V1, CallError> {
        Hub::new(&self.url).map(V1)
    }

    /// Runs an agent in its own task; reports an error that ends it.
    pub fn spawn(
        &mut self,
        role: Role,
        work: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) {
        let reporter = self.reporter(role);
        self.tasks.spawn(async move {
            if let Err(error) = work.await {
                reporter.failure(&error);
            }
        });
    }
}

/// The role of the agent with this alias. The hub answers this without a key.
pub async fn role_of_alias(api: &V1, protocol: &str, alias: &str) -> Result<Role, CallError> {
    let name = api.agent(&format!("{protocol}:{alias}")).await?.parse()?.name;
    Role::from_name(&name).ok_or_else(|| unreadable(format!("{alias} is {name:?}")))
}

/// The Polyglot: an agent of relay. It knows nothing of jobs and credits; it replies to messages in
/// French, in the same conversation.
async fn start_polyglot(runner: &mut AgentRunner) -> Result<String, CallError> {
    let server = relay::Server::discover(&runner.url).await?;
    let languages = ["fr".to_owned(), "en".to_owned()];
    let registration = relay::Registration::new("polyglot", CULTURE, &languages);
    let registered = server.register(&registration).await?;
    let (server, address) = (server.with_key(registered.api_key), registered.agent_id);
    let id = format!("relay:{address}");
    let mut inbox = server.inbox(relay::InboxOptions::default()).await?;
    let reporter = runner.reporter(Role::Polyglot);
    runner.spawn(Role::Polyglot, async move {
        while let Some(message) = inbox.next().await {
            let message = message?;
            reporter.activity("reads a message");
            sleep(WORK_TIME).await;
            let french = to_french(&message.contents.original_text);
            let mut reply = relay::EnvelopeSpec::new(&address, CULTURE, &french);
            reply.conversation_id.clone_from(&message.contents.conversation_id);
            reply.turn_number = message.contents.turn_number.map(|turn| turn + 1);
            let text = format!("replies to the message: \"{french}\"");
            reporter.action(Delivers, Some(Role::Editor), None, text);
            let (receiver_id, envelope) = (&message.sender_id, &reply.build()?);
            server
                .send(&relay::SendRequest {
                    receiver_id,
                    envelope,
                    idempotency_key: None,
                    question: false,
                })
                .await?;
        }
        Ok(())
    });
    Ok(id)
}

fn to_french(text: &str) -> String {
    let translate = |word| WORDS.iter().find(|(english, _)| *english == word).map(|pair| pair.1);
    text.split(' ').map(|word| translate(word).unwrap_or(word)).collect::<Vec<_>>().join(" ")
}

/// Checker and Verifier: two agents of registry that check facts. The Checker fails, as planned.
async fn start_checker(runner: &mut AgentRunner, role: Role) -> Result<String, CallError> {
    let fails = role == Role::Checker;
    let price = if fails { plan::CHECK_PRICE } else { plan::SECOND_CHECK_PRICE };
    let price = format_amount(price);
    let skill =
        registry::Skill { name: "check_facts", description: "Checks a claim", price: &price };
    let owner = format!("demo-{}", role.name().to_lowercase());
    let hub = runner.api()?.0;
    let agent = registry::Agent::register(&hub, role.name(), &owner, &[skill]).await?;
    let (id, reporter) = (format!("registry:{}", agent.id()), runner.reporter(role));
    runner.spawn(role, async move {
        loop {
            for job in agent.fetch_jobs(FETCH_SECONDS).await? {
                reporter.activity("checks the facts");
                sleep(WORK_TIME).await;
                let outcome = if fails {
                    reporter.action(
                        Fails,
                        Some(Role::Editor),
                        None,
                        "fails: its archive is unavailable",
                    );
                    registry::WorkOutcome::Failed("the archive is unavailable".to_owned())
                } else {
                    reporter.action(
                        Delivers,
                        Some(Role::Editor),
                        None,
                        "delivers: the claim is true",
                    );
                    registry::WorkOutcome::Done(json!({"is_so": true}))
                };
                agent.report_result(&job, &outcome).await?;
            }
        }
    });
    Ok(id)
}

/// An agent of agora that works for a price.
#[derive(Clone, Copy)]
struct Bidder {
    role: Role,
    resource: &'static str,
    price: Credits,
    /// The agent that hires it.
    requester: Role,
    /// Whether it offers its price when asked, instead of listing it.
    offers: bool,
    accepted: &'static str,
    output: &'static str,
    delivers: &'static str,
}

const SCOUT: Bidder = Bidder {
    role: Role::Scout,
    resource: "agora:find_news:v1",
    price: plan::NEWS_PRICE,
    requester: Role::Editor,
    offers: true,
    accepted: "gets its OFFER accepted: it was within the bid, so the hub sent the ACCEPT",
    output: r#"{"headline":"the bridge is open"}"#,
    delivers: "delivers the headline: \"the bridge is open\"",
};

const COURIER: Bidder = Bidder {
    role: Role::Courier,
    resource: "agora:tweet:v1",
    price: plan::COURIER_PRICE,
    requester: Role::Newsstand,
    offers: false,
    accepted: "wins the auction: its listed 3.60 is 4.00 in clara's whole credits, the lowest bid",
    output: r#"{"cried":"on every square"}"#,
    delivers: "delivers: the news is announced on every square",
};

async fn start_bidder(runner: &mut AgentRunner, bidder: Bidder) -> Result<String, CallError> {
    let server = agora::Server::discover(&runner.url).await?;
    let agent = agora::Agent::new(agora::Identity::new(&agora::Seed::random()?), server);
    let skill = agora::Skill::new(bidder.resource);
    let skill = if bidder.offers { skill } else { skill.with_price(bidder.price) };
    let (name, skills) = (Some(bidder.role.name().to_owned()), Some(vec![skill]));
    agent.hello(&agora::Profile { name, skills, endpoint: None }, true).await?;
    let id = format!("agora:{}", agent.identity().did());
    let handler = Arc::new(BidderHandler { bidder, reporter: runner.reporter(bidder.role) });
    let options = agora::ServeOptions::default();
    runner.spawn(bidder.role, async move { agent.serve(options, handler, pending()).await });
    Ok(id)
}

struct BidderHandler {
    bidder: Bidder,
    reporter: Reporter,
}

impl agora::Handler for BidderHandler {
    async fn terms(&self, _: &agora::Job) -> agora::Terms {
        let Bidder { requester, price, offers, .. } = self.bidder;
        if !offers {
            return agora::Terms::Work;
        }
        let text = format!("offers to find the news for {}", format_amount(price));
        self.reporter.action(Offers, Some(requester), Some(price), text);
        agora::Terms::Offer { cost: price, ttl: OFFER_TTL, eta: WORK_TIME }
    }

    async fn work(&self, _: agora::Job, _: agora::Progress) -> Result<String, agora::WorkError> {
        let Bidder { requester, price, accepted, output, delivers, .. } = self.bidder;
        self.reporter.action(OfferAccepted, Some(requester), Some(price), accepted);
        sleep(WORK_TIME).await;
        self.reporter.action(Delivers, Some(requester), None, delivers);
        Ok(output.to_owned())
    }

    fn on_error(&self, error: &agora::ServeError) {
        self.reporter.warning(error.action, &error.reason);
    }
}

/// A new wallet with an agent of this name in clara's market.
pub async fn new_account(
    runner: &AgentRunner,
    role: Role,
    topic: &str,
    fee: Credits,
) -> Result<clara::MarketClient, CallError> {
    let server = clara::Server::discover(&runner.url).await?;
    let account = clara::MarketClient::new(clara::Wallet::new(&clara::Seed::random()?), server);
    let (id, topic) = (role.name().to_owned(), topic.to_owned());
    let metadata = json!({"name": role.name()}).to_string();
    account.register(&clara::Profile { id, topic, fee, metadata }).await?;
    Ok(account)
}

/// Serves an agent of clara, which polls more often than usual, since the demo is short.
pub fn serve_market<H: clara::Handler>(
    runner: &mut AgentRunner,
    role: Role,
    account: clara::MarketClient,
    handler: H,
) -> String {
    let options = clara::ServeOptions { poll_interval: WORK_TIME / 2, ..Default::default() };
    runner.spawn(role, async move {
        account.serve(role.name(), options, Arc::new(handler), pending()).await
    });
    format!("clara:{}", role.name())
}

/// Crier and Herald: two agents of clara that announce news. The Crier declines, the Herald bids too
/// much.
struct AuctionHandler {
    role: Role,
    reporter: Reporter,
}

impl clara::Handler for AuctionHandler {
    async fn price(&self, _: &clara::Query) -> Option<Credits> {
        if self.role == Role::Crier {
            self.reporter.action(Declines, Some(Role::Newsstand), None, "declines: it is busy");
            return None;
        }
        let bid = plan::HERALD_BID;
        let text = format!("bids {} in the sealed auction", format_amount(bid));
        self.reporter.action(Offers, Some(Role::Newsstand), Some(bid), text);
        Some(bid)
    }

    async fn work(&self, _: clara::Task) -> Result<String, clara::WorkError> {
        // Not planned, so the checks would fail; but an agent that is hired works.
        sleep(WORK_TIME).await;
        self.reporter.action(Delivers, Some(Role::Newsstand), None, "announces the news");
        Ok("{}".to_owned())
    }

    fn on_error(&self, error: &clara::ServeError) {
        self.reporter.warning(error.action, &error.reason);
    }
}

#[cfg(test)]
mod tests {
    use super::to_french;

    #[test]
    fn it_knows_the_words_it_needs() {
        assert_eq!(to_french("the bridge is open"), "le pont est ouvert");
        assert_eq!(to_french("the tunnel"), "le tunnel");
    }
}
