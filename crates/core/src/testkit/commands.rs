//! Commands with defaults for everything a test does not care about.

use std::sync::Arc;

use uuid::Uuid;

use super::{HOME, TestHub, agent_in, credits, job_in};
use crate::agent::Terms;
use crate::agent::{Liveness, Skill};
use crate::alias::Digest;
use crate::answer::Answer;
use crate::command::{
    Actor, Command, JobRef, OpenJob, Pay, Registration, ReportResult, SendMessage,
};
use crate::id::{AgentId, JobId};
use crate::job::DEFAULT_PRIORITY;
use crate::job::{Job, Policy, Requester, Selection};
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::time::Millis;

/// A worker's lease, in tests.
pub const LEASE: Millis = Millis::minutes(10);
/// A job's total lifetime, in tests.
pub const JOB_LIFETIME: Millis = Millis::hours(24);

/// A message that goes only to the inbox.
pub fn message(from: AgentId, to: AgentId, body: &str) -> SendMessage {
    let (body, words) = (body.to_owned(), HOME);
    let (from, url, first_try, turn) = (Some(from), None, Millis(0), None);
    SendMessage {
        from,
        to,
        protocol: words,
        body,
        url,
        first_try,
        identity: turn,
        by_operator: false,
    }
}

/// A skill at a price.
pub fn skill(name: &str, price: &str) -> Skill {
    Skill {
        name: name.to_owned(),
        price: credits(price),
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        category: None,
        native_name: None,
        description: String::new(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    }
}

/// A registration of an agent that is always online.
pub fn registration(native: &str, owner: &str, skills: &[(&str, &str)]) -> Registration {
    Registration {
        actor: Actor::OpenRegistration,
        home: HOME,
        native_id: native.to_owned(),
        aliases: Vec::new(),
        owner: owner.to_owned(),
        name: native.to_owned(),
        endpoint: None,
        liveness: Liveness::Always,
        skills: skills.iter().map(|(name, price)| skill(name, price)).collect(),
        terms: Terms::default(),
        status: None,
        card: "{}".to_owned(),
        key: None,
        rotate_key: false,
    }
}

/// The same, for an agent with an endpoint.
pub fn registration_with_endpoint(
    native: &str,
    owner: &str,
    skills: &[(&str, &str)],
) -> Registration {
    let endpoint = Some(format!("https://{native}.example"));
    Registration { endpoint, liveness: Liveness::ByEndpoint, ..registration(native, owner, skills) }
}

impl TestHub {
    /// Registers an agent, or returns the refusal.
    pub fn register(&mut self, order: Registration) -> Result<AgentId, Refusal> {
        self.run(Command::Register(Box::new(order))).map(agent_in)
    }

    /// Registers an agent that is always online.
    pub fn register_worker(
        &mut self,
        native: &str,
        owner: &str,
        skills: &[(&str, &str)],
    ) -> AgentId {
        self.register(registration(native, owner, skills)).expect("a new name is free")
    }

    /// Registers an agent whose owner has credits.
    pub fn register_client(&mut self, native: &str, owner: &str, account: &str) -> AgentId {
        self.grant(owner, account);
        self.register_worker(native, owner, &[])
    }

    /// The agent reads its whole inbox.
    pub fn read_inbox(&mut self, agent: AgentId) {
        let up_to = self.world.inbox(agent).head;
        self.run(Command::Ack { agent, up_to }).expect("the reader is registered");
    }

    pub fn remove(&mut self, agent: AgentId) {
        let command = Command::Remove { agent, by_operator: false };
        self.run(command).expect("the agent is registered");
    }

    pub fn grant(&mut self, owner: &str, amount: &str) {
        let command = Command::Grant { name: owner.to_owned(), amount: credits(amount) };
        self.run(command).expect("grants are small here");
    }

    /// A job for the first agent in discovery order, with new ids.
    pub fn job_order(&mut self, by: AgentId, skill: &str, budget: &str) -> OpenJob {
        let made = self.next_number();
        OpenJob {
            uuid: Uuid::from_u128(u128::from(made)),
            origin: HOME,
            foreign_id: format!("job-{made}"),
            content: Digest::of(&[&made.to_be_bytes()]),
            requester: Requester::Agent(by),
            skill: skill.to_owned(),
            alternative_skills: Vec::new(),
            input: "{}".to_owned(),
            budget: credits(budget),
            price_step: PriceStep::FINEST,
            selection: Selection::BestReputation,
            unfit_agents: Vec::new(),
            policy: Policy::default(),
            deadline: self.now.plus(JOB_LIFETIME),
            lease: LEASE,
            wanted_by: None,
            priority: DEFAULT_PRIORITY,
            callback: None,
            input_error: None,
            meta: "{}".to_owned(),
            hops: 0,
            request_id: None,
        }
    }

    /// Opens a job, or returns the refusal.
    pub fn try_open_job(&mut self, order: OpenJob) -> Result<Arc<Job>, Refusal> {
        self.run(Command::OpenJob(Box::new(order))).map(job_in)
    }

    pub fn open_job(&mut self, order: OpenJob) -> Arc<Job> {
        self.try_open_job(order).expect("a worker takes it")
    }

    /// A report of the worker.
    pub fn job_report(&self, job: JobId, ok: bool, cost: &str) -> ReportResult {
        let by = self.job(job).worker().unwrap_or_default();
        ReportResult {
            job: JobRef::Id(job),
            by,
            epoch: None,
            ok,
            is_final: true,
            knows_work: true,
            no_response: false,
            output: Some("{}".to_owned()),
            cost: credits(cost),
            took: Some(Millis(5)),
            cause: None,
            text: None,
            meta: None,
            content: Digest::of(&[b"word", &job.0.to_be_bytes(), &[u8::from(ok)], cost.as_bytes()]),
        }
    }

    pub fn report_result(&mut self, word: ReportResult) -> Result<Answer, Refusal> {
        self.run(Command::ReportResult(Box::new(word)))
    }

    /// The assigned worker succeeds.
    pub fn succeed(&mut self, job: JobId, cost: &str) -> Arc<Job> {
        let word = self.job_report(job, true, cost);
        job_in(self.report_result(word).expect("it is assigned"))
    }

    /// The assigned worker fails.
    pub fn fail(&mut self, job: JobId) -> Arc<Job> {
        let word = self.job_report(job, false, "0");
        job_in(self.report_result(word).expect("it is assigned"))
    }

    /// The assigned worker declines.
    pub fn decline(&mut self, job: JobId) -> Arc<Job> {
        let by = self.job(job).worker().unwrap_or_default();
        let command = Command::Decline { job: JobRef::Id(job), by, epoch: None, reason: None };
        job_in(self.run(command).expect("it is assigned"))
    }

    /// The connection to the assigned worker fails.
    pub fn unreachable(&mut self, job: JobId) -> Arc<Job> {
        let epoch = self.job(job).epoch;
        job_in(self.run(Command::MarkUnreachable { job, epoch }).expect("it is assigned"))
    }

    /// A transfer with a new id.
    pub fn payment(&mut self, from: &str, to: &str, amount: &str) -> Pay {
        let made = self.next_number();
        Pay {
            origin: HOME,
            foreign_id: format!("transfer-{made}"),
            id_given: true,
            from: from.to_owned(),
            to: to.to_owned(),
            amount: credits(amount),
            job: None,
            open_payee: false,
            content: Digest::of(&[b"pay", &made.to_be_bytes()]),
        }
    }

    pub fn pay(&mut self, order: Pay) -> Result<Answer, Refusal> {
        self.run(Command::Pay(Box::new(order)))
    }
}
