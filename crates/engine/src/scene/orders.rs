//! Commands with defaults for everything that a test does not care about.

use rialto_core::agent::{Liveness, Skill};
use rialto_core::alias::Digest;
use rialto_core::command::{Actor, Command, Enrol, JobRef, OpenJob, Pay, ReportWork, SendMessage};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Policy, Requester, Selection};
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::{HOME, credits};

/// How long a worker may go without a report.
pub const LEASE: Millis = Millis::minutes(1);
/// How long a job may take in total.
const LIFE: Millis = Millis::hours(1);

/// A message that goes only to the inbox.
pub fn said(from: AgentId, to: AgentId, body: &str) -> SendMessage {
    let (body, words) = (body.to_owned(), HOME);
    let (from, url, first_try, turn) = (Some(from), None, Millis(0), None);
    SendMessage { from, to, words, body, url, first_try, turn, by_operator: false }
}

/// The command that sends one.
pub fn say(from: AgentId, to: AgentId, body: &str) -> Command {
    Command::Send(Box::new(said(from, to, body)))
}

/// A registration of an agent without a capacity limit.
pub fn enrol(native: &str, owner: &str, skills: &[(&str, &str)]) -> Enrol {
    let skill = |(name, price): &(&str, &str)| Skill {
        name: (*name).to_owned(),
        price: credits(price),
        by_offer: false,
        takes: None,
        approval: false,
        sort: None,
        stands_for: None,
        about: String::new(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    Enrol {
        actor: Actor::Open,
        home: HOME,
        native: native.to_owned(),
        aliases: Vec::new(),
        owner: owner.to_owned(),
        name: native.to_owned(),
        endpoint: None,
        liveness: Liveness::Always,
        skills: skills.iter().map(skill).collect(),
        terms: Default::default(),
        condition: None,
        card: "{}".to_owned(),
        key: None,
        rotate: false,
    }
}

/// A job number `n` for the first agent in discovery order.
pub fn open(n: u64, by: AgentId, skill: &str, budget: &str, now: Timestamp) -> OpenJob {
    OpenJob {
        uuid: Uuid::from_u128(u128::from(n)),
        origin: HOME,
        foreign: format!("job-{n}"),
        content: Digest::of(&[&n.to_be_bytes()]),
        requester: Requester::Agent(by),
        skill: skill.to_owned(),
        also: Vec::new(),
        input: "{\"text\":\"界\"}".to_owned(),
        budget: credits(budget),
        grain: rialto_core::grain::Grain::FINE,
        selection: Selection::BestReputation,
        unfit: Vec::new(),
        policy: Policy::default(),
        deadline: now.plus(LIFE),
        lease: LEASE,
        promised: None,
        priority: rialto_core::job::PRIORITY,
        callback: None,
        flaw: None,
        meta: "{}".to_owned(),
        hops: 0,
        request_id: None,
    }
}

/// A worker's result of a job.
pub fn report(job: JobId, by: AgentId, ok: bool, cost: &str) -> Command {
    Command::Report(Box::new(ReportWork {
        job: JobRef::Id(job),
        by,
        epoch: None,
        ok,
        silent: false,
        output: Some("{\"done\":true}".to_owned()),
        cost: credits(cost),
        took: Millis(5),
        cause: None,
        text: None,
        words: None,
        content: Digest::of(&[b"word", &job.0.to_be_bytes(), &[u8::from(ok)], cost.as_bytes()]),
    }))
}

/// A transfer number `n`.
pub fn pay(n: u64, from: &str, to: &str, amount: &str) -> Pay {
    Pay {
        origin: HOME,
        foreign: format!("transfer-{n}"),
        named: true,
        from: from.to_owned(),
        to: to.to_owned(),
        amount: credits(amount),
        job: None,
        open_payee: false,
        content: Digest::of(&[b"pay", &n.to_be_bytes()]),
    }
}

/// Credits from the operator.
pub fn grant(owner: &str, amount: &str) -> Command {
    Command::Grant { name: owner.to_owned(), amount: credits(amount) }
}
