//! Benchmarks sending on a hub that already stores many messages: the rate must not depend on the
//! store's size.

use std::io;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rialto_core::command::{Command, SendMessage};
use rialto_core::id::AgentId;
use rialto_core::time::Millis;
use rialto_engine::Engine;
use rialto_protocols::relay;

use super::jobs::BenchOptions;
use super::relay_agent::RelayAgent;
use super::relay_fixture::RelayFixture;
use super::report::Goal;
use super::rounds::{Benchmark, Series, run_interleaved};
use super::send::send_plan;

/// Messages in the smaller store.
const FEW: u64 = 10_000;
/// Target share of its rate on the larger store.
const GOAL: f64 = 0.8;
/// Messages in flight into the store at once.
const FILLING: usize = 2_048;

/// Measures a small and a large store in alternating rounds.
pub fn measure(
    how: &BenchOptions,
    receivers: usize,
    many: u64,
) -> io::Result<(Vec<Series>, Vec<Goal>)> {
    let offices = [filled_fixture(how, receivers, FEW)?, filled_fixture(how, receivers, many)?];
    let contestants = offices.iter().zip([FEW, many]).map(|(office, stored)| {
        let plan = send_plan(how, office.hub.address, how.connections);
        Benchmark::new(format!("send, {stored} messages stored"), move |_| office.send(&plan))
    });
    let series = run_interleaved(how.rounds, contestants.collect())?;
    let ratio = series[1].ratio_to(&series[0], |round| round.per_second);
    let goal = Goal::at_least(format!("send, {many} / {FEW} messages stored"), ratio, GOAL, "×");
    Ok((series, vec![goal]))
}

fn filled_fixture(how: &BenchOptions, receivers: usize, stored: u64) -> io::Result<RelayFixture> {
    let office = RelayFixture::start(how.threads, "sqlite", how.connections, receivers)?;
    office.hub.block_on(fill(&office, stored))?;
    Ok(office)
}

/// Puts messages into the inboxes of offline receivers through the commit lane, without HTTP.
async fn fill(office: &RelayFixture, letters: u64) -> io::Result<()> {
    let engine = &office.hub.engine;
    let (senders, receivers) =
        (ids(engine, &office.senders)?, ids(engine, &office.offline_receivers)?);
    let mut under_way = FuturesUnordered::new();
    for n in 0..letters {
        while under_way.len() >= FILLING {
            under_way.next().await.transpose()?;
        }
        let at = n as usize;
        let (sender, receiver) = (at % senders.len(), at / 16 % receivers.len());
        let body = format!(
            r#"{{"chorus_version":"0.4","sender_id":"{}","original_text":"Benchmark message {n:09}, stored before anything was measured","sender_culture":"en","conversation_id":"{:018}"}}"#,
            office.senders[sender].id,
            n / 16,
        );
        let order = SendMessage {
            from: Some(senders[sender]),
            to: receivers[receiver],
            protocol: relay::ID,
            body,
            url: None,
            first_try: Millis::seconds(0),
            identity: None,
            by_operator: false,
        };
        under_way.push(async move {
            let ran = engine.run(Command::SendMessage(Box::new(order))).await;
            ran.map(drop).map_err(io::Error::other)
        });
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(())
}

fn ids(engine: &Engine, people: &[RelayAgent]) -> io::Result<Vec<AgentId>> {
    let known =
        |one: &RelayAgent| engine.with_world(|world| world.agent_by_alias(relay::ID, &one.id));
    let found: Option<Vec<_>> = people.iter().map(known).collect();
    found.ok_or_else(|| io::Error::other("the hub does not know an agent that was just registered"))
}
