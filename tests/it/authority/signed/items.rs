//! The signed actions of clara: one row per action, and the agent it is done as.

use std::collections::BTreeSet;

use About::{Account, Agent, Auction, Newcomer, Task};
use Signer::{Requester, Worker};
use rialto_protocols::clara::Action;
use rialto_protocols::clara::wire::result::MessageResult;

use super::{FORGER, SIGNERS, Signer, doors, held};
use crate::clara::kit::{Hub, Wallet};
use crate::kit::Reply;

/// One action and its permitted signers.
pub struct Row {
    pub signed_action: &'static str,
    pub action: Action,
    /// The owner of the agent it is done as, and the claimed sender when the signer cannot sign.
    whose: Signer,
    /// The object of the action.
    about: About,
    /// By signer: allowed, refused or, without a signature, only evaluated.
    cells: &'static str,
    /// Whether it changes anything.
    changes: bool,
}

/// The object of the action besides the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Nothing but the agent itself.
    Agent,
    /// An agent that is not registered yet.
    Newcomer,
    /// A task assigned to the worker.
    Task,
    /// A task that every agent of its topic may bid for.
    Auction,
    /// The requester's balance.
    Account,
}

impl Row {
    /// The agents a signer tries: the right one and, for a task, its own.
    pub fn names(&self, by: Signer) -> Vec<&'static str> {
        let mut names = vec![agent(self.whose)];
        if by.seed().is_some() && matches!(self.about, Task | Auction) {
            names.push(agent(by));
        }
        names
    }
}

/// The agent of a signer that has one.
fn agent(of: Signer) -> &'static str {
    match of {
        Requester => "R",
        Worker => "W",
        Signer::Asked => "A",
        Signer::Stranger | Signer::Unsigned | Signer::Forged | Signer::Operator => "S",
    }
}

/// A hub, and the tasks of its market.
pub struct Market {
    pub hub: Hub,
    task: String,
    auction: String,
}

impl Market {
    pub async fn open() -> Self {
        // The window is long, so that nothing expires on a slow machine.
        let hub = Hub::serve(&[("jobs.auction_window", "1h")]).await;
        let [requester, worker, asked, stranger] = [1, 2, 3, 4].map(Wallet::of);
        hub.agent(&requester, "R", "nft", "10").await;
        hub.agent(&worker, "W", "tweet", "20").await;
        hub.agent(&asked, "A", "tweet", "30").await;
        hub.agent(&stranger, "S", "discord", "10").await;
        for one in [&requester, &worker, &asked, &stranger] {
            hub.fund(one, "1000").await;
        }
        let wanted = async |matching: &str| {
            let tags = [
                ("RedStone-Agent-Id", "R"),
                ("RedStone-Agent-Topic", "tweet"),
                ("RedStone-Agent-Reward", "50"),
                ("RedStone-Agent-Matching", matching),
            ];
            hub.send(&requester, "Register-Task", &tags, r#"{"say":"hello"}"#).await
        };
        let done = wanted("cheapest").await;
        hub.deliver(&worker, "W", &done).await;
        let (task, auction) = (wanted("cheapest").await, wanted("query").await);
        Self { hub, task, auction }
    }

    fn tags<'t>(&'t self, row: &Row, agent: &'t str, account: &'t str) -> Vec<(&'t str, &'t str)> {
        let mut tags = vec![("Action", row.action.as_str()), ("Protocol", "C.L.A.R.A.")];
        match row.about {
            Account => tags.push(("Recipient", account)),
            Newcomer => tags.push(("RedStone-Agent-Id", "new")),
            Task => tags.push(("RedStone-Task-Id", &self.task)),
            Auction => tags.push(("RedStone-Task-Id", &self.auction)),
            Agent => {}
        }
        if !matches!(row.about, Account | Newcomer) {
            tags.push(("RedStone-Agent-Id", agent));
        }
        tags.extend([
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "15"),
            ("RedStone-Agent-Reward", "40"),
            ("Quantity", "1"),
        ]);
        tags
    }

    /// The result of the row's order by this signer at a route; `None` if it is not an order.
    pub async fn bring(
        &self,
        row: &Row,
        by: Signer,
        agent: &str,
        door: &str,
    ) -> Option<MessageResult> {
        let seed = by.seed().or(row.whose.seed()).expect("the row has a signer");
        let (wallet, account) = (Wallet::of(seed), Wallet::of(1).address());
        let (tags, data) = (self.tags(row, agent, &account), "{}");
        let item = match by {
            Signer::Unsigned => {
                return Some(self.hub.dry_run_as(&wallet.address(), &tags, data).await);
            }
            Signer::Forged | Signer::Operator => {
                wallet.forged(&Wallet::of(FORGER), &tags, data.as_bytes())
            }
            _ => wallet.item(&tags, data.as_bytes()),
        };
        let mut request = self.hub.http.post(format!("{}{door}", self.hub.url)).body(item);
        if by == Signer::Operator {
            request = request.bearer_auth(&self.hub.operator);
        }
        let reply = Reply::to(request).await;
        match reply.status {
            202 => Some(self.hub.result(&reply.str("/id")).await),
            _ => {
                assert!((400..500).contains(&reply.status), "{}", reply.text);
                None
            }
        }
    }
}

const fn row(
    signed_action: &'static str,
    action: Action,
    whose: Signer,
    about: About,
    cells: &'static str,
) -> Row {
    Row { signed_action, action, whose, about, cells, changes: false }
}

const fn does(row: Row) -> Row {
    Row { changes: true, ..row }
}

#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    does(row("register an agent", Action::RegisterAgentProfile, Worker, Newcomer, "yyyytnn")),
    does(row("change an agent", Action::RegisterAgentProfile, Worker, Agent, "nynntnn")),
    does(row("request a task as an agent", Action::RegisterTask, Requester, Agent, "ynnntnn")),
    does(row("bid", Action::SubmitOffer, Worker, Auction, "nyynnnn")),
    does(row("decline to bid", Action::DeclineTask, Worker, Auction, "nyynnnn")),
    does(row("report", Action::SendResult, Worker, Task, "nynntnn")),
    does(row("decline", Action::DeclineTask, Worker, Task, "nynntnn")),
    row("bid for an assigned task", Action::SubmitOffer, Worker, Task, "nnnnnnn"),
    row("report an open auction", Action::SendResult, Worker, Auction, "nnnnnnn"),

    does(row("read its own work", Action::LoadNextAssignedTask, Worker, Agent, "nynnnnn")),
    does(row("read its open auctions", Action::LoadNextQuery, Worker, Agent, "nynnnnn")),
    does(row("read a result", Action::LoadNextTaskResult, Requester, Agent, "ynnnnnn")),
    row("read the trace of a task", Action::TaskTrace, Worker, Task, "yynnnnn"),
    row("read a balance", Action::Balance, Requester, Account, "ynnnnnn"),
    row("read all balances", Action::Balances, Requester, Account, "nnnnnnn"),

    // The answer is that credits cannot leave the hub.
    row("withdraw credits", Action::Withdraw, Requester, Agent, "yyyynnn"),
    row("withdraw all credits", Action::WithdrawAll, Requester, Agent, "yyyynnn"),
    row("claim a reward", Action::ClaimReward, Worker, Agent, "yyyynnn"),
    row("claim all rewards", Action::ClaimRewardAll, Worker, Agent, "yyyynnn"),

    row("list the agents", Action::ListAgents, Worker, Agent, "yyyyynn"),
    row("read the queue", Action::TasksQueue, Worker, Agent, "yyyyynn"),
    row("dispatch the queue", Action::DispatchTasks, Worker, Agent, "yyyyynn"),
    row("read the dashboard", Action::DashboardData, Worker, Agent, "yyyyynn"),
];

#[test]
fn every_action_has_its_allowed_callers() {
    let all: BTreeSet<&str> = Action::ALL.iter().map(|action| action.as_str()).collect();
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.action.as_str()).collect();
    assert_eq!(all, rows, "actions without a row");
    for row in TABLE {
        assert_eq!(row.cells.len(), SIGNERS.len(), "{}", row.signed_action);
        assert!(
            row.cells.ends_with("nn"),
            "{}: forged messages must be refused",
            row.signed_action
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_is_accepted_only_from_its_allowed_callers() {
    let doors = doors("/clara");
    for row in TABLE {
        let mut market = Market::open().await;
        let before = held(&market.hub).await;
        let cells = || SIGNERS.into_iter().zip(row.cells.chars());
        for (by, cell) in cells().filter(|(_, cell)| *cell != 'y') {
            for name in row.names(by) {
                for door in &doors {
                    let came = market.bring(row, by, name, door).await;
                    let place = format!("{} as {name} by {by:?} at {door}", row.signed_action);
                    let refused = came.as_ref().is_none_or(|came| came.error.is_some());
                    assert!(refused || cell == 't', "{place}: {came:?}");
                }
            }
            assert_eq!(
                held(&market.hub).await,
                before,
                "{} by {by:?} was refused",
                row.signed_action
            );
        }
        for (by, _) in cells().filter(|(_, cell)| *cell == 'y') {
            let name = if by.seed().is_some() { agent(by) } else { agent(row.whose) };
            let came = market.bring(row, by, name, &doors[0]).await.expect("an order");
            let place = format!("{} as {name} by {by:?}: {came:?}", row.signed_action);
            assert!(came.error.is_none() && !came.messages.is_empty(), "{place}");
            assert_eq!(held(&market.hub).await != before, row.changes, "{place}");
            if row.changes {
                market.hub.0.stop().await;
                market = Market::open().await;
            }
        }
        market.hub.0.stop().await;
    }
}
