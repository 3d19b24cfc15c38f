//! Shared by clara's tests: wallets, signed items, and requests to the two units.

#![allow(dead_code)]

use std::ops::Deref;

use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::{MarketMessage, MessageResult, ResultPage};
use rialto_protocols::kit::ans104::{Item, ItemId, SignatureType, UnsignedItem};
use rialto_protocols::kit::ed25519::SecretKey;
use serde_json::{Value, json};

use crate::kit::{Agent, Reply, TestHub, snapshot};

/// A hub as this protocol's tests use it.
pub struct Hub(pub TestHub);

impl Deref for Hub {
    type Target = TestHub;

    fn deref(&self) -> &TestHub {
        &self.0
    }
}

/// A throw-away wallet with an Ed25519 key.
#[derive(Clone, Debug)]
pub struct Wallet {
    key: SecretKey,
}

impl Wallet {
    /// The wallet derived from a number, the same every time.
    pub fn of(number: u8) -> Self {
        Self { key: SecretKey::from_seed(&[number; 32]) }
    }

    pub fn from_key(key: SecretKey) -> Self {
        Self { key }
    }

    pub fn address(&self) -> String {
        let item = self.item(&[], b"");
        Item::read(&item).expect("an item").signer_address()
    }

    /// A signed item with these tags for the market.
    pub fn item(&self, tags: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
        self.item_for(PROCESS, tags, data)
    }

    /// The same for another process.
    pub fn item_for(&self, process: &str, tags: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
        self.written_by(self, process, tags, data)
    }

    /// An item in the name of this wallet, signed by another.
    pub fn forged(&self, by: &Self, tags: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
        self.written_by(by, PROCESS, tags, data)
    }

    fn written_by(&self, pen: &Self, process: &str, tags: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
        // Two items with the same content must be two messages.
        let mut anchor = [0; 32];
        anchor[..16].copy_from_slice(uuid::Uuid::from_u128(next()).as_bytes());
        let target = ItemId::read(process).map(|id| id.0);
        let draft = UnsignedItem { target, anchor: Some(anchor), tags, data };
        let owner = *self.key.public().as_bytes();
        let signature = pen.key.sign(&draft.deep_hash(SignatureType::Ed25519, &owner));
        draft.with_signature(SignatureType::Ed25519, &owner, &signature)
    }
}

fn next() -> u128 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let process = u128::from(std::process::id()) << 64;
    process | u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A message's id and its result.
#[derive(Clone, Debug)]
pub struct Said {
    pub id: String,
    pub result: MessageResult,
}

impl Said {
    /// The first message of the result.
    #[track_caller]
    pub fn first(&self) -> &MarketMessage {
        self.result.messages.first().unwrap_or_else(|| panic!("no message: {:?}", self.result))
    }

    /// The data of the first message, as JSON.
    #[track_caller]
    pub fn data(&self) -> Value {
        let data = self.first().data.as_deref().expect("data");
        serde_json::from_str(data).expect("JSON")
    }

    #[track_caller]
    pub fn error(&self) -> &str {
        self.result.error.as_deref().unwrap_or_else(|| panic!("no error: {:?}", self.result))
    }
}

impl Said {
    /// The `Action` tags of the result's messages.
    pub fn actions(&self) -> Vec<&str> {
        self.result.messages.iter().map(|sent| sent.tag("Action").expect("an action")).collect()
    }

    /// The agent that the first message names as chosen.
    #[track_caller]
    pub fn chosen(&self) -> &str {
        self.first().tag("Assigned-Agent-Id").unwrap_or_else(|| panic!("{:?}", self.result))
    }
}

/// A balance, as the registry prints it.
pub fn account(spendable: &str, held: &str) -> (String, String) {
    (format!("{spendable}.00"), format!("{held}.00"))
}

/// The tags that name an agent and a task.
pub fn about<'t>(agent: &'t str, task: &'t str) -> [(&'t str, &'t str); 2] {
    [("RedStone-Agent-Id", agent), ("RedStone-Task-Id", task)]
}

impl Hub {
    /// Everything an Error must leave unchanged. The arrival of the message is counted.
    pub async fn held(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let all = snapshot(&self.0).await;
        (all.shown, all.kept, self.board().await)
    }

    /// Posts a message without reading its result.
    pub async fn send(
        &self,
        by: &Wallet,
        action: &str,
        more: &[(&str, &str)],
        data: &str,
    ) -> String {
        let mut tags = vec![("Action", action), ("Protocol", "C.L.A.R.A.")];
        tags.extend_from_slice(more);
        let reply = self.post_bytes(by.item(&tags, data.as_bytes())).await.expect(202);
        reply.str("/id")
    }

    /// Delivers a result.
    pub async fn deliver(&self, by: &Wallet, agent: &str, task: &str) -> Said {
        self.act(by, "Send-Result", &about(agent, task), r#"{"done":1}"#).await
    }

    /// Declines a task.
    pub async fn decline(&self, by: &Wallet, agent: &str, task: &str) -> Said {
        self.act(by, "Decline-Task", &about(agent, task), "").await
    }

    /// Makes an offer.
    pub async fn offer(&self, by: &Wallet, agent: &str, task: &str, fee: &str) -> Said {
        let [first, second] = about(agent, task);
        self.act(by, "Submit-Offer", &[first, second, ("RedStone-Agent-Fee", fee)], "").await
    }

    /// Registers a task without waiting for its result.
    pub async fn auction(&self, by: &Wallet, topic: &str, reward: &str) -> String {
        let tags = [
            ("RedStone-Agent-Topic", topic),
            ("RedStone-Agent-Reward", reward),
            ("RedStone-Agent-Matching", "query"),
        ];
        self.send(by, "Register-Task", &tags, r#"{"say":"hello"}"#).await
    }

    /// Sends a message that is answered with this Error, and changes nothing.
    #[track_caller]
    pub fn assert_error<'h>(
        &'h self,
        by: &'h Wallet,
        tags: &'h [(&'h str, &'h str)],
        data: &'h str,
        text: &'h str,
    ) -> impl Future<Output = ()> + 'h {
        let caller = std::panic::Location::caller();
        async move {
            let before = self.held().await;
            let said = self.say(by, tags, data).await;
            assert_eq!(said.result.error.as_deref(), Some(text), "{tags:?} at {caller}");
            assert!(said.result.messages.is_empty(), "{tags:?} at {caller}");
            assert_eq!(self.held().await, before, "{tags:?} at {caller}");
        }
    }

    pub async fn serve(flags: &[(&str, &str)]) -> Self {
        Self(TestHub::serve(flags).await)
    }

    /// Gives an address credits.
    pub async fn fund(&self, wallet: &Wallet, amount: &str) {
        self.grant(&format!("clara:{}", wallet.address()), amount).await;
    }

    /// The available and held credits of an address.
    pub async fn account(&self, wallet: &Wallet) -> (String, String) {
        self.balance(&format!("clara:{}", wallet.address())).await
    }

    /// A registry agent with one skill, which polls.
    pub async fn agent_of_registry(&self, owner: &str, skill: &str, price: &str) -> Agent {
        self.0.agent(owner, skill, price, None).await
    }

    /// The response body of a path.
    pub async fn get_text(&self, path: String) -> String {
        self.get(&path, None).await.expect(200).text
    }

    /// Posts bytes to the message unit.
    pub async fn post_bytes(&self, bytes: Vec<u8>) -> Reply {
        let request = self.http.post(format!("{}/clara/mu", self.url));
        let request = request.header("content-type", "application/octet-stream").body(bytes);
        Reply::to(request).await
    }

    /// The result of a message.
    pub async fn result(&self, id: &str) -> MessageResult {
        let path = format!("/clara/cu/result/{id}?process-id={PROCESS}");
        let reply = self.get(&path, None).await.expect(200);
        MessageResult::read(reply.text.as_bytes()).expect("a result")
    }

    /// Sends a message and reads its result.
    pub async fn say(&self, by: &Wallet, tags: &[(&str, &str)], data: &str) -> Said {
        let reply = self.post_bytes(by.item(tags, data.as_bytes())).await.expect(202);
        let id = reply.str("/id");
        let result = self.result(&id).await;
        Said { id, result }
    }

    /// The same with an action and the protocol's name.
    pub async fn act(&self, by: &Wallet, action: &str, more: &[(&str, &str)], data: &str) -> Said {
        let mut tags = vec![("Action", action), ("Protocol", "C.L.A.R.A.")];
        tags.extend_from_slice(more);
        self.say(by, &tags, data).await
    }

    /// Registers an agent.
    pub async fn agent(&self, by: &Wallet, id: &str, topic: &str, fee: &str) -> Said {
        let tags = [
            ("RedStone-Agent-Topic", topic),
            ("RedStone-Agent-Fee", fee),
            ("RedStone-Agent-Id", id),
        ];
        let said = self.act(by, "Register-Agent-Profile", &tags, r#"{"url":"https://x"}"#).await;
        assert_eq!(said.first().tag("Action"), Some("Registered"), "{said:?}");
        said
    }

    /// Registers a task.
    pub async fn task(&self, by: &Wallet, topic: &str, reward: &str, matching: &str) -> Said {
        let tags = [
            ("RedStone-Agent-Topic", topic),
            ("RedStone-Agent-Reward", reward),
            ("RedStone-Agent-Matching", matching),
        ];
        self.act(by, "Register-Task", &tags, r#"{"say":"hello"}"#).await
    }

    /// Evaluate a message without storing it.
    pub async fn dry_run(&self, tags: &[(&str, &str)], data: &str) -> MessageResult {
        self.dry_run_as("1234", tags, data).await
    }

    /// The same, claiming a sender.
    pub async fn dry_run_as(
        &self,
        owner: &str,
        tags: &[(&str, &str)],
        data: &str,
    ) -> MessageResult {
        let tags: Vec<Value> =
            tags.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let body = json!({"Id": "1234", "Target": PROCESS, "Owner": owner, "Anchor": "0",
            "Data": data, "Tags": tags});
        let path = format!("/clara/cu/dry-run?process-id={PROCESS}");
        let reply = self.post(&path, None, &body).await.expect(200);
        MessageResult::read(reply.text.as_bytes()).expect("a result")
    }

    /// The board.
    pub async fn board(&self) -> Vec<Value> {
        let listed = self.dry_run(&[("Action", "List-Agents")], "").await;
        let data = listed.messages[0].data.clone().expect("data");
        serde_json::from_str(&data).expect("JSON")
    }

    /// One agent of the board.
    pub async fn listed(&self, id: &str) -> Value {
        let all = self.board().await;
        all.into_iter().find(|agent| agent["id"] == id).unwrap_or_else(|| panic!("no {id}"))
    }

    /// A page of results.
    pub async fn results(&self, query: &str) -> ResultPage {
        let reply = self.get(&format!("/clara/cu/results/{PROCESS}{query}"), None).await;
        ResultPage::read(reply.expect(200).text.as_bytes()).expect("a page")
    }
}
