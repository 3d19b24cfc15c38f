//! Random job requests: jobs of every kind, for any available worker.

use proptest::prelude::*;

use super::steps::{AGENTS, SKILLS, agent_at, pick};
use crate::alias::Digest;
use crate::command::{Command, OpenJob};
use crate::id::AgentId;
use crate::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use crate::job::{Policy, Requester, Selection};
use crate::testkit::TestHub;
use crate::time::Millis;

/// One random request. The numbers are choices, taken modulo the available options.
#[derive(Clone, Debug)]
pub struct Wish {
    by: u8,
    skill: u8,
    budget: u8,
    choice: u8,
    policy: u8,
    life: u8,
    name: Option<u8>,
    /// The input may be invalid while the worker is away.
    flaw: Option<u8>,
}

pub fn wish() -> impl Strategy<Value = Wish> {
    let n = || any::<u8>();
    let rarely = || prop::option::weighted(0.15, any::<u8>());
    let sometimes = prop::option::weighted(0.25, any::<u8>());
    let all = (n(), n(), n(), n(), n(), n(), rarely(), sometimes);
    all.prop_map(|(by, skill, budget, choice, policy, life, name, flaw)| Wish {
        by,
        skill,
        budget,
        choice,
        policy,
        life,
        name,
        flaw,
    })
}

impl Wish {
    pub fn command(&self, scene: &mut TestHub) -> Command {
        let Self { by, skill, budget, choice, policy, life, name, flaw } = *self;
        let requester = agent_at(scene, by);
        let budget = ["0", "0.10", "0.20", "0.50", "2.00"][usize::from(budget % 5)];
        let mut order: OpenJob = scene.job_order(requester, pick(&SKILLS, skill), budget);
        if by % 16 == 15 {
            order.requester = Requester::Guest("guest".to_owned());
        }
        let closes = scene.now.plus(Millis::seconds(i64::from(life % 40)));
        order.selection = match choice % 8 {
            0 => Selection::Direct(agent_at(scene, choice / 8)),
            1 => Selection::BestReputation,
            2 => Selection::RoundRobin,
            3 => Selection::Cheapest,
            4 => Selection::LeastOccupied,
            5 => Selection::Broadcast,
            6 if choice > 127 => Selection::BroadcastToProtocol,
            6 => Selection::Offers,
            _ => Selection::Auction { closes },
        };
        let not_before =
            (life % 5 == 0).then(|| scene.now.plus(Millis::seconds(i64::from(life) / 2)));
        order.policy = Policy {
            reassignment: Reassignment {
                when_unreachable: policy & 1 != 0,
                when_declined: policy & 2 != 0,
                when_failed: policy & 4 != 0,
            },
            queueing: Queueing { when_unmatched: policy & 8 != 0, after_failure: skill & 4 != 0 },
            requester: RequesterOptions {
                answered_at_once: policy & 32 != 0,
                cancels_any_time: policy & 64 != 0,
                unpaid: skill & 24 == 24,
                waits: skill & 32 != 0,
                follows_log: life % 3 == 0,
            },
            named_worker: NamedWorker {
                may_be_offline: policy & 128 != 0,
                not_before: not_before.filter(|_| matches!(order.selection, Selection::Direct(_))),
            },
        };
        let wanted = scene.now.plus(Millis::seconds(i64::from(life)));
        order.wanted_by = (policy & 128 != 0 && life % 3 == 0).then_some(wanted);
        order.priority = 1 + skill % 9;
        order.lease = Millis::seconds(20 + i64::from(life));
        order.deadline = scene.now.plus(Millis::seconds(i64::from(life) * 10));
        order.callback = (policy & 16 != 0).then(|| "https://callback.example".to_owned());
        order.hops = choice / 25;
        if let Some(flaw) = flaw {
            // An agent that is away, if there is one.
            let away = |who: &AgentId| {
                scene
                    .world
                    .agent_state(*who)
                    .is_some_and(|agent_state| agent_state.presence.until.is_some())
            };
            let all: Vec<AgentId> = (0..AGENTS).map(|who| agent_at(scene, who)).collect();
            let gone: Vec<AgentId> = all.iter().copied().filter(away).collect();
            let worker = pick(if gone.is_empty() { &all } else { &gone }, flaw);
            (order.selection, order.policy.requester.answered_at_once) =
                (Selection::Direct(worker), true);
            order.input_error = (flaw % 4 != 0).then(|| "{\"flaw\":1}".to_owned());
        }
        if let Some(name) = name {
            order.foreign_id = format!("shared-{}", name % 4);
            order.content = Digest::of(&[&[name % 2]]);
        }
        Command::OpenJob(Box::new(order))
    }
}
