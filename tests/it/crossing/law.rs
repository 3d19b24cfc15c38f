//! Invariants over random crossings: money is conserved, one worker is paid at most once, both
//! formulas count a job at most once, and the audit is clean afterwards.

use rialto_core::time::Millis;

use super::books::{Balances, Counted, Names, micros, shown, total};
use super::cells::{
    Cell, FLAGS, Meeting, STARTING_CREDITS, hire_and_say, received, recorded_as_received,
};
use super::notes::assert_told;
use super::party::{End, Order, Saying, Terms, Ticket};
use crate::crash::assert_audit_is_clean;
use crate::kit::TestHub;

/// Crossings of one run.
const CASES: u8 = 60;

/// Pseudo-random numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.roll() % of.len() as u64) as usize]
    }

    /// Any JSON value, including those that parsers often get wrong.
    fn json(&mut self, depth: u8) -> String {
        const LEAVES: &[&str] = &[
            "null",
            "true",
            "0",
            "-0.0",
            "1.50",
            "1e2",
            "1E-7",
            "9007199254740991",
            "0.1",
            r#""""#,
            r#""é € 😀""#,
            r#""a\u0000b\"\\\/""#,
            r#""{\"not\":\"json\"}""#,
            r#""\u2028""#,
            r#""<b>&amp;""#,
        ];
        match self.roll() % 4 {
            0 if depth < 3 => {
                let items: Vec<_> = (0..self.roll() % 4).map(|_| self.json(depth + 1)).collect();
                format!("[{}]", items.join(","))
            }
            1 if depth < 3 => self.object(depth + 1),
            _ => self.pick(LEAVES).to_owned(),
        }
    }

    fn object(&mut self, depth: u8) -> String {
        const NAMES: &[&str] = &["a", "b", "", "é", "budget", "\\\"", "n n"];
        let count = (self.roll() % 4) as usize;
        let members: Vec<_> = NAMES[..count + 2]
            .iter()
            .map(|name| format!(r#""{name}":{}"#, self.json(depth)))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

/// What happens in a crossing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Turn {
    Works,
    Says(Saying),
    Silence,
    Poor,
}

/// A crossing that is left unfinished until time has passed.
struct Left {
    cell: Cell,
    meeting: Meeting,
    names: Names,
    ticket: Ticket,
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_crosses_money_is_conserved_and_every_job_counts_once() {
    let seed = std::env::var("RIALTO_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(0x0bad_5eed);
    println!("RIALTO_SEED={seed}");
    let mut dice = Dice(seed);
    let hub = TestHub::serve(FLAGS).await;
    let mut left = Vec::new();
    for case in 0..CASES {
        let cell = dice.pick(&Cell::all()).seated(case);
        left.extend(cross(&hub, &mut dice, cell, case).await);
        assert_eq!(total(&hub), 0, "case {case}");
    }
    hub.pass(Millis::hours(25));
    for Left { cell, meeting, names, ticket } in &left {
        let ended = meeting.requester.ended(&hub, ticket).await;
        assert_eq!(ended.words, cell.from.words(End::TimedOut, true), "{}", ended.bytes);
        assert_eq!(
            Balances::of(&hub, &meeting.requester.owner()),
            Balances::with(micros(STARTING_CREDITS))
        );
        assert_eq!(Counted::of(&hub, names).await, Counted::BAD, "{}", cell.name());
    }
    drop(left);
    assert_eq!(total(&hub), 0);
    let dir = hub.stop().await;
    assert_audit_is_clean(dir.path());
}

async fn cross(hub: &TestHub, dice: &mut Dice, cell: Cell, case: u8) -> Option<Left> {
    const FREE: &[&str] = &["0"];
    const ASIDES: &[&str] = &["1.50", r#"{"a":[1e2],"b":null}"#, r#""\u2028<b>""#];
    let prices: &[&'static str] = match cell.to.id() {
        "relay" => FREE,
        _ => match cell.to.price_step().decimals {
            0 => &["1", "2", "7"],
            2 => &["0", "0.01", "0.10", "2.99", "3"],
            _ => &["0", "0.000001", "0.123457", "1", "2.999999", "3"],
        },
    };
    let turns = [Turn::Works, Turn::Works, Turn::Silence, Turn::Poor];
    let said = cell.to.sayings().iter().copied();
    let said =
        said.filter(|saying| matches!(saying, Saying::Refuses | Saying::Declines | Saying::Fails));
    let turns: Vec<_> = turns.into_iter().chain(said.map(Turn::Says)).collect();
    let (turn, price) = (dice.pick(&turns), dice.pick(prices));
    // A message needs a text, whatever else it contains.
    let input = dice.object(0).replacen('{', r#"{"text":"“Ünïcödé”","#, 1);
    let aside =
        (dice.roll().is_multiple_of(2) && cell.crosses()).then(|| dice.pick(ASIDES).to_owned());
    let order = Order { input, budget: dice.pick(&["1", "3", "9"]).to_owned(), aside };
    let what = format!("case {case}: {} {turn:?} at {price}, {order:?}", cell.name());
    println!("{what}");

    let asked_first = matches!(turn, Turn::Says(Saying::Refuses | Saying::Declines));
    let balances = if turn == Turn::Poor { "0.5" } else { STARTING_CREDITS };
    let meeting = cell.meet_with(hub, Terms { asked_first, ..Terms::at(price) }, balances).await;
    let (worker, requester) = (meeting.worker.as_ref(), meeting.requester.as_ref());
    let names = Names::of(hub, worker).await;
    let found = cell.from.find(hub, worker).await;
    let cost = shown(price, cell.from.price_step());
    let affordable = cost <= micros(&order.budget);

    if let (Turn::Says(saying), true) = (turn, affordable) {
        let hired = hire_and_say(hub, &meeting, (&found, &order), (saying, "no")).await;
        assert!(hired.is_ok() || asked_first, "{what}: {hired:?}");
        if let Ok(ticket) = hired {
            requester.ended(hub, &ticket).await;
            if saying == Saying::Fails {
                assert_told(hub, (cell, &meeting), &ticket, None).await;
            }
        }
        let judged = if saying == Saying::Fails { Counted::BAD } else { Counted::NOTHING };
        assert_eq!(Counted::of(hub, &names).await, judged, "{what}");
        assert_eq!(
            Balances::of(hub, &requester.owner()),
            Balances::with(micros(balances)),
            "{what}"
        );
        return None;
    }
    let ticket = match requester.hire(hub, &found, &order).await {
        Ok(ticket) => ticket,
        Err(refused) => {
            assert!(!affordable || turn == Turn::Poor, "{what}: {refused:?}");
            assert_eq!(
                Balances::of(hub, &requester.owner()),
                Balances::with(micros(balances)),
                "{what}"
            );
            assert!(worker.waiting(hub).await.is_empty(), "{what}");
            assert_eq!(Counted::of(hub, &names).await, Counted::NOTHING, "{what}");
            return None;
        }
    };
    assert!(affordable, "{what}");
    let given = received(hub, worker).await;
    assert_eq!(given.input, order.input, "{what}");
    // Within one protocol, an invited worker may not have responded yet.
    if cell.crosses() {
        assert_told(hub, (cell, &meeting), &ticket, None).await;
    }
    if turn == Turn::Silence {
        recorded_as_received(hub, &ticket).await;
        return Some(Left { cell, meeting, names, ticket });
    }
    for _ in 0..dice.roll() % 3 {
        assert_eq!(requester.repeat(hub, &ticket).await.id, ticket.id, "{what}");
    }
    let sent = worker.deliver(hub, &given).await;
    assert!(sent.taken, "{what}");
    requester.repeat(hub, &ticket).await;
    worker.deliver(hub, &given).await;
    let ended = requester.ended(hub, &ticket).await;
    assert_eq!(ended.output.as_deref(), Some(worker.output()), "{what}");
    assert_told(hub, (cell, &meeting), &ticket, Some(&sent)).await;
    assert_eq!(Counted::of(hub, &names).await, Counted::GOOD, "{what}");
    assert_eq!(
        Balances::of(hub, &requester.owner()),
        Balances::with(micros(balances) - cost),
        "{what}"
    );
    assert_eq!(Balances::of(hub, &worker.owner()), Balances::with(cost), "{what}");
    None
}
