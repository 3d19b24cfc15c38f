//! The hub's own API (`/v1`): one function per operation, and what requests and answers contain.
//!
//! An answer keeps its text, because `--json` prints it unchanged. Amounts keep their digits.

mod money;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::marker::PhantomData;

use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use money::*;
pub use types::*;

/// Maximum page size of the hub.
pub const PAGE_MAX: usize = 200;

/// The API of a hub, called with a key if there is one.
#[derive(Clone, Debug)]
pub struct V1(pub Hub);

/// An answer of the hub, or one item of a list: its text, and what it is.
pub struct Answer<T> {
    pub text: String,
    kind: PhantomData<T>,
}

/// What a call returns.
pub type Reply<T> = Result<Answer<T>, CallError>;

/// The query values of a list.
type Query = Vec<(&'static str, Option<String>)>;

/// A list that is read page by page.
pub struct Pages<T> {
    hub: Hub,
    path: String,
    /// The query values of every page.
    values: Query,
    /// The cursor of the next page; `None` at the end.
    next: Option<Option<String>>,
    kind: PhantomData<T>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl<T: DeserializeOwned> Answer<T> {
    pub fn new(text: String) -> Self {
        Self { text, kind: PhantomData }
    }

    /// What the answer says.
    pub fn parse(&self) -> Result<T, CallError> {
        parse_json(&self.text)
    }
}

impl V1 {
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Reply<T> {
        let (_, text) = self.0.call_text(Method::GET, path, None).await?;
        Ok(Answer::new(text))
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Reply<T> {
        let body = body.map(serde_json::to_string).transpose().map_err(unreadable)?;
        let (_, text) = self.0.call_text(Method::POST, path, body).await?;
        Ok(Answer::new(text))
    }

    /// The same with an idempotency key: the call has one effect, however often it is made.
    async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Reply<T> {
        let body = serde_json::to_string(body).map_err(unreadable)?;
        let key = Some(key.to_owned());
        let (_, text) = self.0.call_once(Method::POST, path, Some(body), key).await?;
        Ok(Answer::new(text))
    }

    fn list<T>(&self, path: &str, values: Query) -> Pages<T> {
        let (hub, path) = (self.0.clone(), path.to_owned());
        Pages { hub, path, values, next: Some(None), kind: PhantomData }
    }

    pub async fn me(&self) -> Result<CallerView, CallError> {
        self.get("/v1/me").await?.parse()
    }

    /// The caller's account, as text.
    pub async fn own_account(&self) -> Reply<AccountView> {
        #[derive(Deserialize)]
        struct Me {
            account: Box<RawValue>,
        }
        let own: Me = self.get("/v1/me").await?.parse()?;
        Ok(Answer::new(own.account.get().to_owned()))
    }

    /// The caller's keys; a limited key sees itself alone.
    pub async fn keys(&self) -> Result<Vec<Answer<KeyView>>, CallError> {
        let page: Page = self.get("/v1/keys").await?.parse()?;
        Ok(page.items.iter().map(|item| Answer::new(item.get().to_owned())).collect())
    }

    pub async fn make_key(&self, key: &impl Serialize) -> Reply<MadeKey> {
        self.post("/v1/keys", Some(key)).await
    }

    pub async fn revoke_key(&self, id: &str) -> Result<(), CallError> {
        self.0.call_text(Method::DELETE, &path(&["keys", id]), None).await.map(drop)
    }

    pub async fn account(&self, owner: &str) -> Reply<AccountView> {
        self.get(&path(&["accounts", owner])).await
    }

    pub fn ledger(&self) -> Pages<LedgerEntry> {
        self.list("/v1/ledger", Vec::new())
    }

    pub async fn agent(&self, name: &str) -> Reply<AgentView> {
        self.get(&path(&["agents", name])).await
    }

    pub fn agents(&self, values: Query) -> Pages<AgentView> {
        self.list("/v1/agents", values)
    }

    pub async fn reputation(&self, agent: &str) -> Reply<Reputation> {
        self.get(&path(&["agents", agent, "reputation"])).await
    }

    pub async fn post_job(&self, job: &NewJob<'_>) -> Reply<JobView> {
        self.post("/v1/jobs", Some(job)).await
    }

    /// A job; with `wait`, the hub answers after that many seconds, or when the job ends.
    pub async fn job(&self, id: &str, wait: Option<u64>) -> Reply<JobView> {
        let wait = [("wait", wait.map(|seconds| seconds.to_string()))];
        self.get(&with_query(&path(&["jobs", id]), wait)).await
    }

    pub fn jobs(&self, side: &str, state: &str) -> Pages<JobView> {
        let values = vec![("side", Some(side.to_owned())), ("state", Some(state.to_owned()))];
        self.list("/v1/jobs", values)
    }

    pub async fn offers(&self, job: &str) -> Reply<Offers> {
        self.get(&path(&["jobs", job, "offers"])).await
    }

    pub async fn accept_offer(&self, job: &str, offer: &OfferChoice) -> Reply<JobState> {
        self.post(&path(&["jobs", job, "accept"]), Some(offer)).await
    }

    pub async fn submit_result(&self, job: &str, reply: &WorkerReply<'_>) -> Reply<JobState> {
        self.post(&path(&["jobs", job, "result"]), Some(reply)).await
    }

    pub async fn decline(&self, job: &str, reply: &WorkerReply<'_>) -> Reply<JobState> {
        self.post(&path(&["jobs", job, "decline"]), Some(reply)).await
    }

    pub async fn report(&self, job: &str, body: &ReportBody<'_>, key: &str) -> Reply<JobState> {
        self.post_once(&path(&["jobs", job, "progress"]), body, key).await
    }

    pub async fn add_part(&self, job: &str, body: &PartBody<'_>, key: &str) -> Reply<JobState> {
        self.post_once(&path(&["jobs", job, "parts"]), body, key).await
    }

    pub async fn ask(&self, job: &str, body: &AskBody<'_>, key: &str) -> Reply<AskState> {
        self.post_once(&path(&["jobs", job, "ask"]), body, key).await
    }

    pub async fn answer(&self, job: &str, body: &AnswerBody<'_>) -> Reply<JobState> {
        self.post(&path(&["jobs", job, "answer"]), Some(body)).await
    }

    pub async fn cancel(&self, job: &str, reason: Option<&str>) -> Reply<JobState> {
        let body = reason.map_or(json!({}), |reason| json!({"reason": reason}));
        self.post(&path(&["jobs", job, "cancel"]), Some(&body)).await
    }

    pub async fn trace(&self, job: &str) -> Reply<Trace> {
        self.get(&path(&["jobs", job, "trace"])).await
    }

    pub async fn check_inbox(&self) -> Result<(), CallError> {
        self.get::<Value>("/v1/inbox?limit=1").await.map(drop)
    }

    /// The request that the hub would make to `url` for a notice.
    pub async fn notice_delivery(
        &self,
        position: u64,
        url: &str,
    ) -> Result<Option<DeliveryRequest>, CallError> {
        let values = [("position", Some(position.to_string())), ("url", Some(url.to_owned()))];
        let answer = self.get(&with_query("/v1/inbox/delivery", values)).await?;
        answer.parse().map(|answer: NoticeDelivery| answer.delivery)
    }

    pub async fn rotate_key(&self) -> Result<NewSecret, CallError> {
        self.post("/v1/keys/rotate", None::<&()>).await?.parse()
    }

    pub fn deliveries(&self, state: Option<&str>) -> Pages<DeliveryView> {
        self.list("/v1/webhooks", vec![("state", state.map(str::to_owned))])
    }

    pub async fn test_delivery(&self) -> Reply<TestDelivery> {
        self.post("/v1/webhooks/test", Some(&json!({}))).await
    }

    pub async fn resend(&self, delivery: u64) -> Reply<Value> {
        self.post(&path(&["webhooks", &delivery.to_string(), "resend"]), Some(&json!({}))).await
    }

    pub async fn rotate_webhook_secret(&self) -> Result<NewSecret, CallError> {
        self.post("/v1/webhooks/secret", None::<&()>).await?.parse()
    }

    pub async fn stats(&self) -> Reply<BTreeMap<String, Box<RawValue>>> {
        self.get("/v1/operator/stats").await
    }

    pub async fn cluster(&self) -> Reply<ClusterView> {
        self.get("/v1/operator/cluster").await
    }

    pub fn operator_jobs(&self, state: &str) -> Pages<JobView> {
        self.list("/v1/operator/jobs", vec![("state", Some(state.to_owned()))])
    }

    pub fn operator_agents(&self, state: Option<&str>) -> Pages<OperatorAgentView> {
        self.list("/v1/operator/agents", vec![("state", state.map(str::to_owned))])
    }

    pub async fn grant(&self, owner: &str, amount: Credits, create: bool) -> Reply<AccountView> {
        #[derive(Serialize)]
        struct Grant<'a> {
            owner: &'a str,
            amount: Amount,
            create: bool,
        }
        let body = Grant { owner, amount: Amount(amount), create };
        self.post("/v1/operator/grants", Some(&body)).await
    }

    pub async fn burn(&self, owner: &str, amount: Credits) -> Reply<AccountView> {
        #[derive(Serialize)]
        struct Burn<'a> {
            owner: &'a str,
            amount: Amount,
        }
        self.post("/v1/operator/burns", Some(&Burn { owner, amount: Amount(amount) })).await
    }

    /// Suspends, resumes or revokes: `kind` is `agents` or `owners`.
    pub async fn moderate(&self, kind: &str, name: &str, action: &str) -> Reply<Value> {
        self.post(&path(&["operator", kind, name, action]), None::<&()>).await
    }

    pub async fn issue_operator_key(&self, retire_others: bool) -> Result<NewSecret, CallError> {
        let body = json!({"retire_others": retire_others});
        self.post("/v1/operator/keys", Some(&body)).await?.parse()
    }
}

impl NewSecret {
    /// The new key.
    pub fn key(&self) -> Result<&str, CallError> {
        self.key.as_deref().ok_or_else(|| unreadable("missing field `key`"))
    }
}

impl<T: DeserializeOwned> Pages<T> {
    /// The next items, at most `most`; `None` at the end of the list.
    pub async fn next_page(&mut self, most: usize) -> Result<Option<Vec<Answer<T>>>, CallError> {
        let Some(cursor) = self.next.take() else { return Ok(None) };
        let own = [("limit", Some(most.clamp(1, PAGE_MAX).to_string())), ("cursor", cursor)];
        let path = with_query(&self.path, self.values.iter().cloned().chain(own));
        let (_, text) = self.hub.call_text(Method::GET, &path, None).await?;
        let page: Page = parse_json(&text)?;
        self.next = page.next_cursor.map(Some);
        Ok(Some(page.items.iter().map(|item| Answer::new(item.get().to_owned())).collect()))
    }

    /// The first items of the list, at most `limit`.
    pub async fn take(&mut self, limit: u32) -> Result<Vec<Answer<T>>, CallError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut items = Vec::new();
        while items.len() < limit
            && let Some(more) = self.next_page(limit - items.len()).await?
        {
            items.extend(more);
        }
        Ok(items)
    }

    /// The wanted items of the first pages, at most `limit`.
    pub async fn search(
        &mut self,
        pages_max: usize,
        limit: usize,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>, CallError> {
        let mut matches = Vec::new();
        for _ in 0..pages_max {
            let Some(items) = self.next_page(PAGE_MAX).await? else { break };
            for item in items {
                matches.extend(Some(item.parse()?).filter(&is_wanted));
                if matches.len() == limit {
                    return Ok(matches);
                }
            }
        }
        Ok(matches)
    }

    /// Whether there are more pages.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

/// A path of the API, with escaped names.
fn path(parts: &[&str]) -> String {
    parts.iter().fold("/v1".to_owned(), |path, part| format!("{path}/{}", encode_part(part)))
}

/// Escapes a name as one path segment or query value.
pub fn encode_part(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("memory can be written to");
        }
    }
    out
}

/// A path with the query values that are present.
fn with_query<'a>(
    path: &str,
    values: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> String {
    let given = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encode_part(&value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Parses JSON text.
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, CallError> {
    serde_json::from_str(text).map_err(unreadable)
}

/// The error for an answer that is not as expected.
pub fn unreadable(error: impl std::fmt::Display) -> CallError {
    CallError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_stay_one_part() {
        assert_eq!(encode_part("did:key:z/é?&="), "did%3Akey%3Az%2F%C3%A9%3F%26%3D");
        assert_eq!(path(&["jobs", "a/b", "trace"]), "/v1/jobs/a%2Fb/trace");
        let all = [("q", Some("a b".to_owned())), ("skill", None), ("limit", Some("5".to_owned()))];
        assert_eq!(with_query("/v1/agents", all), "/v1/agents?q=a%20b&limit=5");
        assert_eq!(with_query("/v1/agents", [("q", None)]), "/v1/agents");
    }
}
