//! clara's agents and wallets: signed items with tags, and a board.

use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_protocols::clara::PROCESS;
use serde_json::json;

use crate::clara::kit::Wallet;
use crate::crossing::party::{
    Doing, End, Ended, Found, Given, Members, Order, Posed, Protocol, Refused, Repeated, Requester,
    Saying, Sent, Terms, Ticket, WAITS, Worker,
};
use crate::crossing::raw::{items, names, raw, text};
use crate::kit::{Reply, TestHub, eventually};

const MESSAGES: &str = "/clara/mu";
/// The topic of every registration; a task for a named agent does not need it.
const TOPIC: &str = "tweet";

pub struct Clara;

/// Posts an item.
async fn post(hub: &TestHub, item: &[u8]) -> Reply {
    let headers = [("content-type", "application/octet-stream")];
    hub.send("POST", MESSAGES, &headers, item).await
}

/// The result of a message, verbatim.
async fn result(hub: &TestHub, id: &str) -> String {
    let path = format!("/clara/cu/result/{id}?process-id={PROCESS}");
    hub.get(&path, None).await.expect(200).text
}

/// Every message of the market, oldest first.
async fn said(hub: &TestHub) -> Vec<String> {
    let path = format!("/clara/cu/results/{PROCESS}?limit=1000&sort=ASC");
    let page = hub.get(&path, None).await.expect(200).text;
    let nodes = items(&page, "/edges").into_iter();
    nodes.flat_map(|edge| items(&edge, "/node/Messages")).collect()
}

/// The value of a message's tag.
fn tag(message: &str, name: &str) -> Option<String> {
    let tags = items(message, "/Tags");
    let found = tags.iter().find(|tag| text(tag, "/name").as_deref() == Some(name))?;
    text(found, "/value")
}

/// The whole board.
async fn board(hub: &TestHub) -> Vec<String> {
    let body = json!({"Id": "1234", "Target": PROCESS, "Owner": "1234", "Anchor": "0", "Data": "",
        "Tags": [{"name": "Action", "value": "List-Agents"}]});
    let path = format!("/clara/cu/dry-run?process-id={PROCESS}");
    let listed = hub.post(&path, None, &body).await.expect(200).text;
    items(&text(&listed, "/Messages/0/Data").expect("a board"), "")
}

/// A message in readable form: its tags, then its data.
fn readable(tags: &[(&str, &str)], data: &str) -> String {
    let lines: String = tags.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    format!("{lines}\n{data}")
}

impl Protocol for Clara {
    fn id(&self) -> &'static str {
        "clara"
    }

    fn price_step(&self) -> PriceStep {
        PriceStep { decimals: 0, minimum: Credits::from_micros(1_000_000) }
    }

    fn price(&self) -> &'static str {
        "2"
    }

    fn words(&self, end: End, _: bool) -> &'static str {
        match end {
            End::Done => "Task-Result",
            End::Refused | End::Declined => "Task-Unassigned",
            End::Failed => "Task-Expired",
            End::TimedOut => "Task-Unassigned",
            End::Cancelled => "Task-Expired",
            End::Offline => WAITS,
            End::BudgetTooLow => "No agents to choose from",
            End::TooFewCredits => "Requesting agent funds are insufficient",
            End::Unfit => "the input does not match the agent's input schema: n must be a number",
        }
    }

    fn sayings(&self) -> &'static [Saying] {
        &[Saying::Declines]
    }

    fn worker<'a>(
        &'a self,
        hub: &'a TestHub,
        seat: u8,
        terms: Terms,
    ) -> Doing<'a, Box<dyn Worker>> {
        Box::pin(async move {
            let agent = Signer { wallet: Wallet::of(seat), id: format!("w{seat}") };
            let tags = [
                ("RedStone-Agent-Topic", TOPIC),
                ("RedStone-Agent-Fee", terms.price),
                ("RedStone-Agent-Id", &agent.id),
            ];
            let (_, came) = agent.act(hub, "Register-Agent-Profile", &tags, "{}").await;
            assert_eq!(
                tag(&raw(&came, "/Messages/0").expect(&came), "Action").as_deref(),
                Some("Registered")
            );
            Box::new(agent) as Box<dyn Worker>
        })
    }

    fn requester<'a>(&'a self, _: &'a TestHub, seat: u8) -> Doing<'a, Box<dyn Requester>> {
        // A wallet that only requests needs no registration.
        Box::pin(async move {
            let wallet = Wallet::of(seat);
            let id = wallet.address();
            Box::new(Signer { wallet, id }) as Box<dyn Requester>
        })
    }

    fn find<'a>(&'a self, hub: &'a TestHub, worker: &'a dyn Worker) -> Doing<'a, Found> {
        Box::pin(async move {
            let is_it = |entry: &&String| {
                let named = |at| text(entry, at).as_deref() == Some(worker.native());
                named("/nativeId") || named("/id")
            };
            let board = board(hub).await;
            let entry = board.iter().find(is_it);
            let entry = entry.unwrap_or_else(|| panic!("{} is not in {board:?}", worker.native()));
            Found {
                alias: text(entry, "/id").expect("an id"),
                skill: worker.skill().to_owned(),
                price: text(entry, "/fee").expect("a fee"),
                entry: entry.clone(),
            }
        })
    }
}

/// A wallet, and its agent if it has one.
#[derive(Clone)]
struct Signer {
    wallet: Wallet,
    id: String,
}

impl Signer {
    /// Sends a message; returns it in readable form, and its result.
    async fn act(
        &self,
        hub: &TestHub,
        action: &str,
        more: &[(&str, &str)],
        data: &str,
    ) -> (String, String) {
        let tags = tags(action, more);
        let reply = post(hub, &self.wallet.item(&tags, data.as_bytes())).await.expect(202);
        (readable(&tags, data), result(hub, &reply.str("/id")).await)
    }

    /// The trace of one of its tasks.
    async fn traced(&self, hub: &TestHub, id: &str) -> String {
        let (_, came) = self.act(hub, "Task-Trace", &[("RedStone-Task-Id", id)], "").await;
        text(&came, "/Messages/0/Data").unwrap_or_else(|| panic!("no trace: {came}"))
    }

    async fn tell(&self, hub: &TestHub, action: &str, task: &str, data: &str) -> Sent {
        let about = [("RedStone-Agent-Id", &*self.id), ("RedStone-Task-Id", task)];
        let (bytes, came) = self.act(hub, action, &about, data).await;
        let members = members(&tags(action, &about), data);
        Sent { bytes, members, taken: raw(&came, "/Error").is_none(), answer: came }
    }
}

fn tags<'t>(action: &'t str, more: &[(&'t str, &'t str)]) -> Vec<(&'t str, &'t str)> {
    let mut tags = vec![("Action", action), ("Protocol", "C.L.A.R.A.")];
    tags.extend_from_slice(more);
    tags
}

/// The members of a message, by its tags.
fn members(tags: &[(&str, &str)], data: &str) -> Members {
    let data = Some(("/Data", data)).filter(|(_, data)| !data.is_empty());
    let all = tags.iter().copied().chain(data);
    all.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

impl Worker for Signer {
    fn home(&self) -> &'static dyn Protocol {
        &Clara
    }

    fn native(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> String {
        format!("clara:{}", self.wallet.address())
    }

    fn skill(&self) -> &'static str {
        "clara.tweet"
    }

    fn output(&self) -> &'static str {
        r#"{"done":[1.0,"¡ya!"]}"#
    }

    fn waiting<'a>(&'a self, hub: &'a TestHub) -> Doing<'a, Vec<Given>> {
        Box::pin(async move {
            let board = board(hub).await;
            let own = board.iter().find(|entry| text(entry, "/id").as_deref() == Some(&self.id));
            let inbox = names(own.expect("it is listed"), "/tasks/inbox");
            if inbox.is_empty() {
                return Vec::new();
            }
            // Only the oldest can be read; the others are only counted.
            let about = [("RedStone-Agent-Id", &*self.id)];
            let (_, came) = self.act(hub, "Load-Next-Assigned-Task", &about, "").await;
            let oldest = text(&came, "/Messages/0/Data").expect("a task");
            let given = |id: String| Given {
                also: Vec::new(),
                input: raw(&oldest, "/payload").expect("a payload"),
                price: text(&oldest, "/reward"),
                bytes: oldest.clone(),
                id,
            };
            inbox.into_iter().map(given).collect()
        })
    }

    fn deliver<'a>(&'a self, hub: &'a TestHub, given: &'a Given) -> Doing<'a, Sent> {
        Box::pin(async move { self.tell(hub, "Send-Result", &given.id, self.output()).await })
    }

    fn colleague<'a>(&'a self, _: &'a TestHub) -> Doing<'a, Option<Box<dyn Requester>>> {
        Box::pin(async move {
            let (wallet, id) = (self.wallet.clone(), self.wallet.address());
            Some(Box::new(Signer { wallet, id }) as Box<dyn Requester>)
        })
    }

    fn say<'a>(
        &'a self,
        hub: &'a TestHub,
        given: &'a Given,
        saying: Saying,
        text: &'a str,
    ) -> Doing<'a, Sent> {
        Box::pin(async move {
            assert_eq!(saying, Saying::Declines, "clara workers can only decline");
            self.tell(hub, "Decline-Task", &given.id, text).await
        })
    }

    fn register_again<'a>(&'a self, hub: &'a TestHub, name: &'a str) -> Doing<'a, ()> {
        Box::pin(async move {
            let tags = [
                ("RedStone-Agent-Topic", TOPIC),
                ("RedStone-Agent-Fee", "3"),
                ("RedStone-Agent-Id", &*self.id),
            ];
            let metadata = json!({"name": name}).to_string();
            let (_, came) = self.act(hub, "Register-Agent-Profile", &tags, &metadata).await;
            assert!(raw(&came, "/Error").is_none(), "{came}");
        })
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        Box::new(self.clone())
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(self.traced(hub, id))
    }
}

impl Requester for Signer {
    fn native(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> String {
        format!("clara:{}", self.wallet.address())
    }

    fn hire<'a>(
        &'a self,
        hub: &'a TestHub,
        of: &'a Found,
        order: &'a Order,
    ) -> Doing<'a, Result<Ticket, Refused>> {
        Box::pin(async move {
            let mut more = vec![
                ("RedStone-Agent-Topic", TOPIC),
                ("RedStone-Agent-Reward", &*order.budget),
                ("Target-Agent-Id", &*of.alias),
            ];
            // A wallet with an agent requests in its name.
            if self.id != self.wallet.address() {
                more.push(("RedStone-Agent-Id", &*self.id));
            }
            more.extend(order.aside.as_deref().map(|aside| ("aside", aside)));
            let tags = tags("Register-Task", &more);
            let body = self.wallet.item(&tags, order.input.as_bytes());
            let reply = post(hub, &body).await.expect(202);
            let id = reply.str("/id");
            let came = result(hub, &id).await;
            // Error texts contain values, so only the text around them is compared.
            let bytes = format!("{}\n→\n{came}", readable(&tags, &order.input));
            if let Some(error) = text(&came, "/Error") {
                return Err(Refused { words: without_values(&error), bytes });
            }
            let uuid = reply.header("rialto-job").expect("the hub's own id").to_owned();
            let members = members(&tags, &order.input);
            Ok(Ticket { id, uuid, path: MESSAGES.to_owned(), body, members, bytes })
        })
    }

    fn repeat<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Repeated> {
        Box::pin(async move {
            let reply = post(hub, &ticket.body).await.expect(202);
            let uuid = reply.header("rialto-job").map(str::to_owned);
            Repeated { id: reply.str("/id"), uuid }
        })
    }

    fn ended<'a>(&'a self, hub: &'a TestHub, ticket: &'a Ticket) -> Doing<'a, Ended> {
        Box::pin(async move {
            let ends = ["Task-Result", "Task-Unassigned", "Task-Expired", "Query-Failed"];
            let address = self.wallet.address();
            let is_it = |message: &String| {
                tag(message, "Task-Id").as_deref() == Some(&ticket.id)
                    && text(message, "/Target").as_deref() == Some(&address)
                    && tag(message, "Action").is_some_and(|action| ends.contains(&action.as_str()))
            };
            let mut found = None;
            eventually(async || {
                found = said(hub).await.into_iter().find(is_it);
                found.is_some()
            })
            .await;
            let message = found.expect("an end");
            let data = text(&message, "/Data").unwrap_or_default();
            Ended {
                words: tag(&message, "Action").unwrap_or_default(),
                id: tag(&message, "Task-Id").unwrap_or_default(),
                output: raw(&data, "/result"),
                // The market's text, and the agent's own reason.
                detail: format!("{data} {}", tag(&message, "Reason").unwrap_or_default()),
                bytes: message,
            }
        })
    }

    fn call_off<'a>(
        &'a self,
        _: &'a TestHub,
        _: &'a Found,
        _: &'a Order,
    ) -> Doing<'a, Option<Ended>> {
        Box::pin(async { None })
    }

    fn trace<'a>(&'a self, hub: &'a TestHub, id: &'a str) -> Doing<'a, String> {
        Box::pin(self.traced(hub, id))
    }

    fn pose<'a>(&'a self, hub: &'a TestHub, whom: &'a Found) -> Doing<'a, Posed> {
        Box::pin(async move {
            let refused = |came: String| {
                let error = text(&came, "/Error").unwrap_or_default();
                let error = error.replace(&whom.alias, "").replace(&self.wallet.address(), "");
                Refused { words: without_values(&error), bytes: came }
            };
            let own = [("RedStone-Agent-Id", &*whom.alias)];
            let (_, spoke) = self.act(hub, "Load-Next-Assigned-Task", &own, "").await;
            let tags = [
                ("RedStone-Agent-Topic", TOPIC),
                ("RedStone-Agent-Fee", "1"),
                ("RedStone-Agent-Id", &*whom.alias),
            ];
            let (_, took) = self.act(hub, "Register-Agent-Profile", &tags, "{}").await;
            Posed { spoke: refused(spoke), took: Some(refused(took)) }
        })
    }
}

/// An Error without the values in brackets.
fn without_values(error: &str) -> String {
    let mut depth = 0;
    let kept: String = error
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(');
            let keep = depth == 0;
            depth -= i32::from(*c == ')');
            keep
        })
        .collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}
