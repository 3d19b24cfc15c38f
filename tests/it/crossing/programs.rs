//! One program, run by `rialto agent run`, hired from every protocol.

use super::cells::{FLAGS, STARTING_CREDITS};
use super::matrix::order;
use super::parties::{ALL, of};
use super::party::{Doing, End, Given, Protocol, Requester, Saying, Sent, Worker};
use crate::kit::TestHub;
use crate::runtime::kit::{Place, Runtime};

const SKILL: &str = "echo_back";

/// An agent that works by itself; the tests can only find it.
pub struct Program {
    id: String,
    owner: String,
    skill: &'static str,
    output: &'static str,
}

impl Program {
    pub fn of(runtime: &Runtime, skill: &'static str, output: &'static str) -> Self {
        let said = runtime.said("at_work").expect("it is at work");
        let text = |name: &str| said[name].as_str().expect("text").to_owned();
        Self { id: text("agent_id"), owner: text("owner"), skill, output }
    }
}

/// The tests must not do its work.
const BY_ITSELF: &str = "the program does this itself";

impl Worker for Program {
    fn home(&self) -> &'static dyn Protocol {
        of("registry")
    }

    fn native(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        self.skill
    }

    fn owner(&self) -> String {
        self.owner.clone()
    }

    fn skill(&self) -> &'static str {
        self.skill
    }

    fn output(&self) -> &'static str {
        self.output
    }

    fn waiting<'a>(&'a self, _: &'a TestHub) -> Doing<'a, Vec<Given>> {
        panic!("{BY_ITSELF}")
    }

    fn deliver<'a>(&'a self, _: &'a TestHub, _: &'a Given) -> Doing<'a, Sent> {
        panic!("{BY_ITSELF}")
    }

    fn say<'a>(&'a self, _: &'a TestHub, _: &'a Given, _: Saying, _: &'a str) -> Doing<'a, Sent> {
        panic!("{BY_ITSELF}")
    }

    fn register_again<'a>(&'a self, _: &'a TestHub, _: &'a str) -> Doing<'a, ()> {
        panic!("{BY_ITSELF}")
    }

    fn as_requester(&self) -> Box<dyn Requester + '_> {
        panic!("{BY_ITSELF}")
    }

    fn trace<'a>(&'a self, _: &'a TestHub, _: &'a str) -> Doing<'a, String> {
        panic!("{BY_ITSELF}")
    }
}

#[tokio::test]
async fn one_program_answers_a_requester_of_every_protocol() {
    let (hub, place) = (TestHub::serve(FLAGS).await, Place::new());
    place.file("handler.sh", r#"cat >>jobs; echo '{"did":1.50}'"#);
    let flags = ["--skill", SKILL, "--price", "0.10", "--exec", "sh handler.sh"];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let program = Program::of(&runtime, SKILL, r#"{"did":1.50}"#);
    for (protocol, seat) in ALL.iter().zip(1..) {
        let requester = protocol.requester(&hub, seat).await;
        hub.grant(&requester.owner(), STARTING_CREDITS).await;
        let found = protocol.find(&hub, &program).await;
        let ticket = requester.hire(&hub, &found, &order()).await.expect("it is hired");
        let ended = requester.ended(&hub, &ticket).await;
        let words = [true, false].map(|begun| protocol.words(End::Done, begun));
        assert!(words.contains(&ended.words.as_str()), "{}: {}", protocol.id(), ended.bytes);
        assert_eq!(ended.output.as_deref(), Some(program.output()), "{}", protocol.id());
    }
    let jobs = place.text("jobs");
    assert_eq!(jobs.lines().count(), ALL.len(), "each was run once: {jobs}");
    // The handler saw the same input, digit for digit, from every protocol.
    let input = format!(r#""input":{},"#, order().input);
    assert!(jobs.lines().all(|job| job.contains(&input)), "{jobs}");
}
