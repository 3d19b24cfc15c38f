//! The scenario: all agents start, the Reader posts its job, and the hub's records are read at the
//! end.

use std::time::Duration;

use rialto_client::CallError;
use tokio::time::{sleep, timeout};

use super::hub_records::Books;
use super::role::Who;
use super::event::Event;
use super::demo_hub::House;
use super::demo_agent::{self, People};
use super::plan;
use super::agents::reader::{Bulletin, Reader};
use super::agents::{Known, Wings};
use super::report::Report;
use super::display::Stage;
use super::reporter::{Teller, Word};
use crate::commands::error::Trouble;
use crate::exit::Exit;

/// Time limit for each step.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often to check whether all agents are online.
const LOOK: Duration = Duration::from_millis(25);

/// Runs the scenario from the first registration to the last payment.
pub async fn play(house: &House, stage: &mut Stage) -> Result<Report, Trouble> {
    let (tell, mut words) = Teller::new();
    let mut wings = Wings::new(&house.url, tell);
    let (reader, known) = within("all agents register", enter(house, &mut wings)).await?;
    let before = demo_agent::look(house, &known).await?;
    stage.open(&house.url);
    let mut telling = Telling { house, stage, people: &before, events: Vec::new(), mishap: None };
    telling.show_purses().await?;
    let mut asking = std::pin::pin!(reader.ask(&wings));
    let bulletin = loop {
        tokio::select! {
            // Reports sent before the end are shown before the end.
            biased;
            word = timeout(PATIENCE, words.recv()) => match word {
                Ok(Some(word)) => telling.hear(word).await?,
                _ => return Err(late(&telling.next())),
            },
            bulletin = &mut asking => break bulletin.map_err(|error| stuck(Who::Reader, &error))?,
        }
    };
    while let Ok(word) = words.try_recv() {
        telling.hear(word).await?;
    }
    let events = telling.events;
    let (after, books) = within("the hub's records are read", async {
        let after = demo_agent::look(house, &known).await?;
        let books = Books::read(house, &reader, &bulletin.job, &after).await?;
        Ok((after, books))
    })
    .await?;
    let Bulletin { job, text: bulletin } = bulletin;
    Ok(Report { job, events, bulletin, before, after, books, breaches: Vec::new() })
}

/// The progress so far, and where it is shown.
struct Telling<'a> {
    house: &'a House,
    stage: &'a mut Stage,
    people: &'a People,
    events: Vec<Event>,
    /// The last warning, if any.
    mishap: Option<String>,
}

impl Telling<'_> {
    /// The next expected step, and the likely reason why it is late.
    fn next(&self) -> String {
        let step = plan::next(&self.events).map_or("the end".to_owned(), plan::Step::told);
        let why = self.mishap.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{step}{why}")
    }

    async fn hear(&mut self, word: Word) -> Result<(), Trouble> {
        match word {
            Word::Event(event) => {
                self.stage.told(&event);
                self.events.push(event);
                self.show_purses().await?;
            }
            Word::Doing(who, what) => self.stage.doing(who, &what),
            Word::Mishap(who, what) => self.mishap = Some(format!("{who} reports: {what}")),
            Word::Stuck(who, why) => return Err(stuck(who, &why)),
        }
        Ok(())
    }

    async fn show_purses(&mut self) -> Result<(), CallError> {
        if self.stage.is_live() {
            self.stage.purses(&demo_agent::purses(self.house, self.people).await?);
        }
        Ok(())
    }
}

/// Starts all agents and grants credits to those that pay.
async fn enter(house: &House, wings: &mut Wings) -> Result<(Reader, Known), CallError> {
    let reader = Reader::enter(wings).await?;
    let mut known = wings.enter().await?;
    known.insert(Who::Reader, format!("registry:{}", reader.id));
    all_online(house, &known).await?;
    for (who, person) in demo_agent::look(house, &known).await? {
        house.grant(&person.owner, who.granted()).await?;
    }
    Ok((reader, known))
}

/// Waits until the hub shows all workers as online.
async fn all_online(house: &House, known: &Known) -> Result<(), CallError> {
    loop {
        let people = demo_agent::look(house, known).await?;
        let works = |who: &Who| *who != Who::Reader;
        if people.iter().filter(|(who, _)| works(who)).all(|(_, person)| person.online) {
            return Ok(());
        }
        sleep(LOOK).await;
    }
}

/// Runs a step with a time limit.
async fn within<T>(
    step: &str,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, Trouble> {
    Ok(timeout(PATIENCE, work).await.map_err(|_| late(step))??)
}

/// The error for a step that timed out.
fn late(step: &str) -> Trouble {
    Trouble {
        exit: Exit::TimedOut,
        code: None,
        message: format!("timed out after {} s waiting for: {step}", PATIENCE.as_secs()),
        next: Some("try again when the machine is less busy".to_owned()),
    }
}

/// The error for an agent that cannot continue.
fn stuck(who: Who, why: &impl std::fmt::Display) -> Trouble {
    Trouble {
        exit: Exit::Failed,
        code: None,
        message: format!("{who} ({}) failed: {why}", who.protocol()),
        next: Some("run `rialto demo --plain` to see the steps".to_owned()),
    }
}
