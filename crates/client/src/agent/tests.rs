use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use serde_json::{Value, json};

use super::job::OUTPUT_MAX;
use super::{Concurrency, Dialogue, Handlers, Job, JobRefusal, Outcome, Skill};
use crate::clock;

fn job(skill: &str, input: &str) -> Job {
    Job {
        id: "j1".to_owned(),
        epoch: 1,
        skill: skill.to_owned(),
        input: input.to_owned(),
        requester: "alice".to_owned(),
        budget: Credits::parse("0.10", 2).expect("an amount"),
        deadline: None,
        time_limit: Duration::MAX,
        meta: None,
        dialogue: Dialogue::default(),
    }
}

fn shouting() -> Skill {
    let skill = Skill::new("shout", "0.05").expect("a skill");
    let text = r#"{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}"#;
    skill.input_schema(text).and_then(|skill| skill.output_schema(text)).expect("schemas")
}

async fn shout(job: Job) -> Outcome {
    let input: Value = job.input().expect("JSON");
    Outcome::from_output(&json!({"text": input["text"].as_str().map(str::to_uppercase)}))
}

#[tokio::test]
async fn a_job_that_fits_is_done() {
    let handlers = Handlers::builder().skill(shouting(), shout).build();
    let outcome = handlers.run_job(job("shout", r#"{"text":"hi"}"#)).await;
    assert_eq!(outcome, Outcome::Done(r#"{"text":"HI"}"#.to_owned()));
}

#[tokio::test]
async fn what_does_not_fit_never_reaches_the_handler() {
    let broken = |_| async { panic!("it was asked") };
    let handlers = Handlers::builder().skill(shouting(), broken).build();
    let outcome = handlers.run_job(job("shout", r#"{"text":1}"#)).await;
    assert_eq!(
        outcome,
        Outcome::InvalidInput(
            "the input does not match the worker's input schema: text must be a string".to_owned()
        )
    );
    assert!(matches!(handlers.run_job(job("sing", "{}")).await, Outcome::Declined(_)));
    let late = Job { deadline: Some(Timestamp(1)), ..job("shout", r#"{"text":"hi"}"#) };
    assert!(matches!(handlers.run_job(late).await, Outcome::Declined(_)));
}

#[tokio::test]
async fn output_that_breaks_the_skills_word_is_a_failure() {
    let handlers = Handlers::builder()
        .skill(shouting(), |_| async { Outcome::from_output(&json!({"loud": true})) })
        .build();
    let outcome = handlers.run_job(job("shout", r#"{"text":"hi"}"#)).await;
    assert_eq!(
        outcome,
        Outcome::Failed(
            "the output does not match the skill's schema: text is required".to_owned()
        )
    );
}

#[tokio::test]
async fn a_handler_that_breaks_fails_its_job_only() {
    let handlers = Handlers::builder()
        .skill(shouting(), |job: Job| async move {
            assert!(!job.input.contains("bad"), "it broke");
            shout(job).await
        })
        .build();
    assert!(matches!(
        handlers.run_job(job("shout", r#"{"text":"bad"}"#)).await,
        Outcome::Failed(_)
    ));
    assert!(handlers.run_job(job("shout", r#"{"text":"good"}"#)).await.is_done());
}

#[tokio::test(start_paused = true)]
async fn no_job_runs_longer_than_its_time_limit() {
    let never = |_| std::future::pending::<Outcome>();
    let skill = Skill::new("wait", "0").expect("a skill").time_limit(Duration::from_secs(2));
    let handlers = Handlers::builder().skill(skill, never).build();
    let outcome = handlers.run_job(job("wait", "{}")).await;
    assert_eq!(outcome, Outcome::Failed("the job exceeded its time limit of 2 s".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_job_says_how_long_its_handler_has() {
    let told =
        |job: Job| async move { Outcome::from_output(&json!({"ms": job.time_limit.as_millis()})) };
    let skill = Skill::new("tell", "0").expect("a skill").time_limit(Duration::from_secs(60));
    let handlers = Handlers::builder().skill(skill, told).build();
    let soon = Job { deadline: Some(Timestamp(clock::now().0 + 10_000)), ..job("tell", "{}") };
    let Outcome::Done(text) = handlers.run_job(soon).await else { panic!("not done") };
    let told: Value = serde_json::from_str(&text).expect("JSON");
    assert!(told["ms"].as_u64().is_some_and(|ms| ms <= 10_000), "{told}");
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_so_many_and_the_rest_wait() {
    let slow = |_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Outcome::from_output(&json!({}))
    };
    let skill = Skill::new("wait", "0").expect("a skill");
    let handlers = Handlers::builder().skill(skill, slow).concurrency(Concurrency(2)).build();
    let began = tokio::time::Instant::now();
    let all = (0..4).map(|_| handlers.run_job(job("wait", "{}")));
    let outcomes = futures_util::future::join_all(all).await;
    assert!(outcomes.iter().all(Outcome::is_done));
    assert_eq!(began.elapsed(), Duration::from_secs(2));
}

#[test]
fn skill_comes_before_budget_and_budget_before_input() {
    let handlers = Handlers::builder().skill(shouting(), shout).build();
    let cent = |text| Credits::parse(text, 2).expect("an amount");
    assert_eq!(handlers.check_job("sing", cent("0"), "{}").err(), Some(JobRefusal::UnknownSkill));
    let price = cent("0.05");
    let low = Some(JobRefusal::BudgetTooLow { price });
    assert_eq!(handlers.check_job("shout", cent("0.04"), "{}").err(), low);
    assert!(matches!(
        handlers.check_job("shout", price, "{}").err(),
        Some(JobRefusal::InvalidInput(_))
    ));
    assert!(handlers.check_job("shout", price, r#"{"text":""}"#).is_ok());
}

#[test]
fn a_program_reads_one_line_with_the_six_members() {
    let deadline = Some(Timestamp(1_773_000_000_123));
    let job = Job { deadline, ..job("shout", "{\n \"text\": 1.50}") };
    let document = job.to_json_line();
    assert_eq!(
        document,
        r#"{"job_id":"j1","skill":"shout","input":{  "text": 1.50},"requester":"alice","budget":0.10,"deadline":"2026-03-08T20:00:00.123Z"}"#
    );
}

#[test]
fn outputs_become_objects() {
    let done = |text: &str| Outcome::Done(text.to_owned());
    assert_eq!(Outcome::from_json_text(" {\"a\":1.0}\n"), done(r#"{"a":1.0}"#));
    assert_eq!(Outcome::from_json_text("\"HI\""), done(r#"{"result":"HI"}"#));
    assert_eq!(Outcome::from_json_text("[1, 2]"), done(r#"{"result":[1, 2]}"#));
    for text in ["", "HI", "{\"a\":1} {\"b\":2}", "{'a':1}"] {
        assert!(matches!(Outcome::from_json_text(text), Outcome::Failed(_)), "{text}");
    }
}

#[tokio::test]
async fn an_output_that_some_parsers_cannot_read_is_a_failure() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let long = format!("\"{}\"", "x".repeat(OUTPUT_MAX));
    for (output, wrong) in [
        (r#"{"a":1,"a":2}"#, r#"the output is not valid JSON: duplicate member "a""#),
        (r#"{"a":"\ud800"}"#, "the output is not valid JSON: lone surrogate"),
        (r#"{"a":[1e999]}"#, "the output is not valid JSON: the number 1e999 is too large"),
        (&deep(61), "the output is not valid JSON: nested more than 60 levels deep"),
        (&long, "the output is longer than 983040 bytes"),
    ] {
        let given = output.to_owned();
        let skill = Skill::new("make", "0").expect("a skill");
        let make = move |_| std::future::ready(Outcome::Done(given.clone()));
        let handlers = Handlers::builder().skill(skill, make).build();
        let Outcome::Failed(why) = handlers.run_job(job("make", "{}")).await else {
            panic!("{wrong}")
        };
        assert!(why.starts_with(wrong), "{why}");
    }
    assert!(Outcome::from_json_text(&deep(60)).is_done());
}

#[test]
fn an_input_costs_what_the_rule_says() {
    let cent = |text| Credits::parse(text, 2).expect("an amount");
    let skill =
        Skill::new("read", "0.05").and_then(|skill| skill.per_kib("0.01")).expect("a skill");
    assert_eq!(skill.price_for("{}"), cent("0.06"));
    assert_eq!(skill.price_for(&"x".repeat(1025)), cent("0.07"));
}

#[test]
fn an_agent_may_run_as_a_task() {
    fn is_send(_: impl Send) {}
    is_send(super::Agent::new("a").run(std::future::pending()));
}
