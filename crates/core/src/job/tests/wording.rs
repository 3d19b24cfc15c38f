//! Data of the worker's own protocol, kept as received.

use super::responding::asked;
use super::{hire, market};
use crate::alias::Digest;
use crate::command::{ReportResult, WorkerResponse};
use crate::job::{Cause, State};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::testkit::{credits, job_in};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_no_keeps_its_cause_its_text_and_its_words() {
    for words in [some(r#"{"code":"policy_violation"}"#), None] {
        let (mut scene, _, ada, job) = asked();
        let (cause, text) = (Cause::Execution, "not today".to_owned());
        let said = WorkerResponse::Refuse { cause, text, words: words.clone() };
        let ended = scene.respond(job, ada, said).unwrap();
        let report = ended.result.as_ref().expect("it ended");
        assert_eq!((report.cause, report.ok, report.paid), (Some(cause), false, Credits::ZERO));
        assert_eq!((report.text.as_deref(), &report.meta), (Some("not today"), &words));
        assert_eq!((&report.output, report.content), (&None, None));
        assert!(
            scene.agent_state(ada).window.is_empty(),
            "whatever it reports, it never accepted the job"
        );
    }
}

#[test]
fn a_report_keeps_its_words_whether_it_went_well_or_not() {
    for ok in [true, false] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        let job = hire(&mut scene, client, ada).unwrap().id;
        let word = ReportResult { meta: some(r#"{"n":1}"#), ..scene.job_report(job, ok, "0.10") };
        let ended = job_in(scene.report_result(word).unwrap());
        let report = ended.result.as_ref().expect("it ended");
        assert_eq!((report.ok, report.meta.as_deref()), (ok, Some(r#"{"n":1}"#)));
        assert_eq!(report.output.is_some(), ok, "a failure has no output");
        // They are still there after a restart.
        let world = scene.store.rebuild_world(scene.world.rules);
        assert_eq!(world.next, scene.world.next);
    }
}

#[test]
fn an_output_that_breaks_its_own_word_is_shown_and_not_paid() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let job = hire(&mut scene, client, ada).unwrap().id;
    let word = ReportResult {
        cause: Some(Cause::Unusable),
        output: some(r#"{"sum":"seven"}"#),
        meta: some(r#"{"violations":1}"#),
        ..scene.job_report(job, false, "0.10")
    };
    let ended = job_in(scene.report_result(word.clone()).unwrap());
    let report = ended.result.as_ref().expect("it ended");
    assert_eq!((ended.state, report.ok), (State::Failed, false));
    assert_eq!(report.output.as_deref(), Some(r#"{"sum":"seven"}"#));
    assert_eq!(report.meta.as_deref(), Some(r#"{"violations":1}"#));
    assert_eq!((report.paid, report.cause), (Credits::ZERO, Some(Cause::Unusable)));
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.owner("acme").available, Credits::ZERO);
    assert_eq!(scene.agent_state(ada).standing.failures, 1, "and counts against it");
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    // The same report again gets the same answer; a different one comes too late.
    assert_eq!(job_in(scene.report_result(word.clone()).unwrap()).result, ended.result);
    let other = ReportResult { content: Digest::of(&[b"other"]), cost: credits("0.10"), ..word };
    assert!(scene.report_result(other).is_err());
}

#[test]
fn any_other_failure_has_no_output() {
    for cause in [None, Some(Cause::Execution), Some(Cause::Payment), Some(Cause::TimedOut)] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        let job = hire(&mut scene, client, ada).unwrap().id;
        let word = ReportResult { cause, ..scene.job_report(job, false, "0.10") };
        let ended = job_in(scene.report_result(word).unwrap());
        assert_eq!(ended.result.as_ref().unwrap().output, None, "{cause:?}");
    }
}
