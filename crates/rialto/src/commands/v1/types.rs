//! What requests and answers of `/v1` contain, as far as commands use it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Amount;
use crate::commands::notes::NoteRow;

/// An agent.
#[derive(Deserialize)]
pub struct AgentView {
    pub id: u64,
    pub name: String,
    pub owner: String,
    pub protocol: String,
    pub names: BTreeMap<String, String>,
    pub skills: Vec<SkillView>,
    pub score: Box<RawValue>,
    pub jobs_settled: u64,
    /// The score of the hub's own ranking; older hubs do not send it.
    pub rank_score: Option<Box<RawValue>>,
    pub counterparties: Option<u64>,
    pub credits_paid: Option<Box<RawValue>>,
    pub owner_failures: Option<u64>,
    pub online: bool,
    pub registered_at: String,
    /// Of an agent whose own server the hub calls.
    pub server: Option<OwnServer>,
}

/// An agent's own server.
#[derive(Deserialize)]
pub struct OwnServer {
    #[serde(default)]
    pub card_url: String,
    pub interface: OwnInterface,
    pub signature: String,
    pub proven: bool,
    pub fetched_at: String,
    pub problem: Option<FetchProblem>,
}

#[derive(Deserialize)]
pub struct OwnInterface {
    pub url: String,
    pub binding: String,
    pub version: String,
}

/// Why an agent's card could not be fetched.
#[derive(Deserialize)]
pub struct FetchProblem {
    pub at: String,
    pub text: String,
}

/// One skill of an agent.
#[derive(Deserialize)]
pub struct SkillView {
    pub name: String,
    pub price: Box<RawValue>,
    #[serde(default)]
    pub by_offer: bool,
    pub description: String,
    pub input_schema: Option<Box<RawValue>>,
    pub output_schema: Option<Box<RawValue>>,
}

/// A limited key to be made.
#[derive(Serialize)]
pub struct NewKey<'a> {
    pub label: &'a str,
    pub per_job: Amount,
    pub per_day: Amount,
    pub transfers: bool,
}

/// A limited key: it is shown only here.
#[derive(Deserialize)]
pub struct MadeKey {
    pub id: u64,
    pub key: String,
}

/// One of the caller's keys, without its secret.
#[derive(Deserialize)]
pub struct KeyView {
    pub id: u64,
    pub label: Option<String>,
    per_job: Option<Box<RawValue>>,
    per_day: Option<Box<RawValue>>,
    pub transfers: bool,
    pub spent_today: Box<RawValue>,
    pub last_used: Option<String>,
    pub valid_until: Option<String>,
    /// Whether the request was made with it.
    #[serde(rename = "current")]
    pub is_current: bool,
}

impl KeyView {
    /// The most credits for one job, if there is a limit.
    pub fn per_job(&self) -> Option<&str> {
        self.per_job.as_deref().map(RawValue::get)
    }

    /// The most credits for one day, if there is a limit.
    pub fn per_day(&self) -> Option<&str> {
        self.per_day.as_deref().map(RawValue::get)
    }

    /// What the key may spend, in words.
    pub fn describe_limits(&self) -> String {
        let limit = |what, limit: Option<&str>| match limit {
            Some(most) => format!("at most {most} {what}"),
            None => format!("any amount {what}"),
        };
        let transfers = if self.transfers { "transfers allowed" } else { "no transfers" };
        let (job, day) = (limit("per job", self.per_job()), limit("per day", self.per_day()));
        format!("{job}, {day}, {transfers}; {} spent today", self.spent_today.get())
    }
}

/// An owner's account.
#[derive(Deserialize)]
pub struct AccountView {
    pub owner: String,
    pub available: Box<RawValue>,
    pub held: Box<RawValue>,
}

/// The agent of the caller's key, and its account.
#[derive(Deserialize)]
pub struct CallerView {
    pub agent: AgentView,
    pub account: AccountView,
}

/// One movement of credits.
#[derive(Clone, Debug, Deserialize)]
pub struct LedgerEntry {
    pub id: u64,
    pub at: String,
    pub kind: String,
    pub from: SubAccount,
    pub to: SubAccount,
    pub amount: Box<RawValue>,
    /// The hub's id of the job it belongs to.
    pub job: Option<String>,
    pub transfer: Option<String>,
}

/// One of an account's two parts: available or held.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SubAccount {
    pub owner: String,
    pub held: bool,
}

/// A job as the hub shows it to one of its parties.
#[derive(Debug, Deserialize)]
pub struct JobView {
    pub id: String,
    pub skill: String,
    pub state: String,
    /// The hub's number of the requester.
    pub requester: Option<u64>,
    /// The name of a requester without registration.
    pub guest: Option<String>,
    /// The hub's number of the current or last worker.
    pub worker: Option<u64>,
    /// The hub's number of the agent that the job waits for.
    pub waits_for: Option<u64>,
    #[serde(default)]
    pub epoch: u32,
    pub budget: Option<Box<RawValue>>,
    pub price: Option<Box<RawValue>>,
    pub paid: Option<Box<RawValue>>,
    pub cause: Option<String>,
    pub opened_at: String,
    pub assigned_at: Option<String>,
    pub deadline: Option<String>,
    pub ended_at: Option<String>,
    pub input: Option<Box<RawValue>>,
    pub progress: Option<ProgressView>,
    /// The newest parts of the result.
    #[serde(default)]
    pub parts: Vec<PartView>,
    /// The open question.
    pub question: Option<QuestionView>,
    /// All questions.
    #[serde(default)]
    pub questions: Vec<AskedView>,
    pub result: Option<JobResult>,
}

/// How far a job is.
#[derive(Debug, Deserialize)]
pub struct ProgressView {
    pub fraction: Option<f64>,
    pub text: Option<String>,
}

/// A part of a result.
#[derive(Debug, Deserialize)]
pub struct PartView {
    pub number: u32,
    pub artifact: Box<RawValue>,
}

/// A question that waits for an answer.
#[derive(Debug, Deserialize)]
pub struct QuestionView {
    pub number: u32,
    pub text: String,
    /// The requester signs in elsewhere.
    #[serde(default)]
    pub auth: bool,
}

/// A question and its answer.
#[derive(Debug, Deserialize)]
pub struct AskedView {
    pub number: u32,
    pub text: String,
    pub answer: Option<Box<RawValue>>,
}

/// The job's result.
#[derive(Debug, Deserialize)]
pub struct JobResult {
    pub output: Option<Box<RawValue>>,
    pub text: Option<String>,
}

/// A job after a command.
#[derive(Deserialize)]
pub struct JobState {
    pub id: String,
    pub state: String,
}

/// A job after a question.
#[derive(Deserialize)]
pub struct AskState {
    pub id: String,
    pub state: String,
    pub question: Option<QuestionView>,
}

/// A worker's report about one assignment of a job.
#[derive(Serialize)]
pub struct ReportBody<'a> {
    pub epoch: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
}

/// A part of a worker's result.
#[derive(Serialize)]
pub struct PartBody<'a> {
    pub epoch: u32,
    pub artifact: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
}

/// A worker's question.
#[derive(Serialize)]
pub struct AskBody<'a> {
    pub epoch: u32,
    pub text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auth: bool,
}

/// A requester's answer.
#[derive(Serialize)]
pub struct AnswerBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<&'a RawValue>,
}

/// A job to post.
#[derive(Serialize)]
pub struct NewJob<'a> {
    pub id: Uuid,
    pub skill: &'a str,
    pub input: &'a RawValue,
    pub budget: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<&'a str>,
}

#[derive(Deserialize)]
pub struct Offers {
    pub offers: Vec<OfferView>,
}

#[derive(Deserialize)]
pub struct OfferView {
    pub id: u64,
    pub agent: u64,
    pub name: String,
    pub price: Box<RawValue>,
    pub valid_until: Option<String>,
    pub accepted: bool,
}

/// Identifies the offer to accept.
#[derive(Serialize)]
pub struct OfferChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Amount>,
}

/// A worker's reply to one assignment of the job.
#[derive(Default, Serialize)]
pub struct WorkerReply<'a> {
    pub epoch: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

/// How a job was translated between two protocols.
#[derive(Deserialize)]
pub struct Trace {
    pub job: String,
    pub state: String,
    pub skill: String,
    pub requester: Party,
    pub worker: Option<Party>,
    pub money: Money,
    pub hops: Vec<Hop>,
    pub evidence: Vec<Evidence>,
}

#[derive(Deserialize)]
pub struct Party {
    pub protocol: String,
    pub id: String,
}

#[derive(Deserialize)]
pub struct Money {
    pub budget: Option<Box<RawValue>>,
    pub price: Option<Box<RawValue>>,
    pub paid: Option<Box<RawValue>>,
}

/// One translation.
#[derive(Deserialize)]
pub struct Hop {
    pub what: String,
    pub from: String,
    pub to: String,
    pub at: String,
    pub notes: Vec<NoteRow>,
    pub asked: Option<String>,
    pub given: Option<String>,
}

#[derive(Deserialize)]
pub struct Evidence {
    pub protocol: String,
    pub of: String,
    pub text: String,
}

/// An agent's reputation: every number needed to recompute it.
#[derive(Deserialize)]
pub struct Reputation {
    pub agent: u64,
    pub registry: RegistryScore,
    pub openclaw: OpenclawScore,
}

/// A score that changes by one step per finished job.
#[derive(Deserialize)]
pub struct RegistryScore {
    pub score: Box<RawValue>,
    pub successes: u64,
    pub failures: u64,
    pub last: Option<ScoreStep>,
}

/// The newest step.
#[derive(Deserialize)]
pub struct ScoreStep {
    pub before: Box<RawValue>,
    /// The requester's score at that time.
    pub hirer: Box<RawValue>,
    pub ok: bool,
    pub after: Box<RawValue>,
    pub formula: String,
}

/// A score over the newest jobs. Without jobs it has no numbers.
#[derive(Deserialize)]
pub struct OpenclawScore {
    pub score: Option<Box<RawValue>>,
    pub success_rate: Option<Box<RawValue>>,
    pub on_time_completion_rate: Option<Box<RawValue>>,
    pub average_response_time_ms: Option<i64>,
    /// The response time that scores zero.
    pub response_scale_ms: i64,
    pub counted: u64,
    pub formula: String,
}

/// A webhook delivery to one of the caller's endpoints.
#[derive(Deserialize)]
pub struct DeliveryView {
    pub id: u64,
    pub state: String,
    pub kind: String,
    pub url: String,
    pub tries: u32,
    pub next_try: Option<String>,
    pub error: Option<String>,
    pub delivered_at: Option<String>,
}

/// How a test delivery ended.
#[derive(Deserialize)]
pub struct TestDelivery {
    pub delivered: bool,
    pub status: Option<u16>,
    pub why: Option<String>,
}

/// The request that the hub would make for a notice, if it makes one.
#[derive(Deserialize)]
pub struct NoticeDelivery {
    pub delivery: Option<DeliveryRequest>,
}

#[derive(Deserialize)]
pub struct DeliveryRequest {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// A new key or webhook secret.
#[derive(Deserialize)]
pub struct NewSecret {
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub webhook_secret: Option<String>,
    /// How long the previous ones stay valid.
    pub others_until: Option<String>,
}

/// The nodes of a hub.
#[derive(Deserialize)]
pub struct ClusterView {
    /// The node that answers.
    pub node: String,
    pub role: String,
    pub epoch: u64,
    pub seq: u64,
    pub lag_ms: u64,
    pub nodes: Vec<NodeView>,
}

#[derive(Deserialize)]
pub struct NodeView {
    pub node: String,
    pub address: String,
    pub role: String,
    pub version: String,
    pub applied: u64,
    pub seen_at: String,
}

/// An agent as the operator sees it.
#[derive(Deserialize)]
pub struct OperatorAgentView {
    pub id: u64,
    pub name: String,
    pub owner: String,
    pub protocol: String,
    pub state: String,
    pub online: bool,
    pub score: Box<RawValue>,
    pub registered_at: String,
}
