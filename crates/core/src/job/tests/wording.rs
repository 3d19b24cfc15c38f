//! Data of the worker's own protocol, kept as received.

use super::responding::asked;
use super::{hire, market};
use crate::alias::Digest;
use crate::command::{ReportWork, Response};
use crate::job::{Cause, State};
use crate::money::Credits;
use crate::notice::News;
use crate::testkit::{credits, job_in};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_no_keeps_its_cause_its_text_and_its_words() {
    for words in [some(r#"{"code":"policy_violation"}"#), None] {
        let (mut scene, _, ada, job) = asked();
        let (cause, text) = (Cause::Execution, "not today".to_owned());
        let said = Response::Refuse { cause, text, words: words.clone() };
        let ended = scene.respond(job, ada, said).unwrap();
        let report = ended.report.as_ref().expect("it ended");
        assert_eq!((report.cause, report.ok, report.paid), (Some(cause), false, Credits::ZERO));
        assert_eq!((report.text.as_deref(), &report.words), (Some("not today"), &words));
        assert_eq!((&report.output, report.content), (&None, None));
        assert!(
            scene.desk(ada).window.is_empty(),
            "whatever it reports, it never accepted the job"
        );
    }
}

#[test]
fn a_report_keeps_its_words_whether_it_went_well_or_not() {
    for ok in [true, false] {
        let (mut scene, client) = market();
        let ada = scene.worker("ada", "acme", &[("sum", "0.10")]);
        let job = hire(&mut scene, client, ada).unwrap().id;
        let word = ReportWork { words: some(r#"{"n":1}"#), ..scene.word(job, ok, "0.10") };
        let ended = job_in(scene.say(word).unwrap());
        let report = ended.report.as_ref().expect("it ended");
        assert_eq!((report.ok, report.words.as_deref()), (ok, Some(r#"{"n":1}"#)));
        assert_eq!(report.output.is_some(), ok, "a failure has no output");
        // They are still there after a restart.
        let world = scene.store.rebuilt(scene.world.rules);
        assert_eq!(world.next, scene.world.next);
    }
}

#[test]
fn an_output_that_breaks_its_own_word_is_shown_and_not_paid() {
    let (mut scene, client) = market();
    let ada = scene.worker("ada", "acme", &[("sum", "0.10")]);
    let job = hire(&mut scene, client, ada).unwrap().id;
    let word = ReportWork {
        cause: Some(Cause::Unusable),
        output: some(r#"{"sum":"seven"}"#),
        words: some(r#"{"violations":1}"#),
        ..scene.word(job, false, "0.10")
    };
    let ended = job_in(scene.say(word.clone()).unwrap());
    let report = ended.report.as_ref().expect("it ended");
    assert_eq!((ended.state, report.ok), (State::Failed, false));
    assert_eq!(report.output.as_deref(), Some(r#"{"sum":"seven"}"#));
    assert_eq!(report.words.as_deref(), Some(r#"{"violations":1}"#));
    assert_eq!((report.paid, report.cause), (Credits::ZERO, Some(Cause::Unusable)));
    assert_eq!(scene.purse("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.owner("acme").available, Credits::ZERO);
    assert_eq!(scene.desk(ada).standing.failures, 1, "and counts against it");
    assert_eq!(scene.told(client), [News::Ended { job }]);
    // The same report again gets the same answer; a different one comes too late.
    assert_eq!(job_in(scene.say(word.clone()).unwrap()).report, ended.report);
    let other = ReportWork { content: Digest::of(&[b"other"]), cost: credits("0.10"), ..word };
    assert!(scene.say(other).is_err());
}

#[test]
fn any_other_failure_has_no_output() {
    for cause in [None, Some(Cause::Execution), Some(Cause::Payment), Some(Cause::TimedOut)] {
        let (mut scene, client) = market();
        let ada = scene.worker("ada", "acme", &[("sum", "0.10")]);
        let job = hire(&mut scene, client, ada).unwrap().id;
        let word = ReportWork { cause, ..scene.word(job, false, "0.10") };
        let ended = job_in(scene.say(word).unwrap());
        assert_eq!(ended.report.as_ref().unwrap().output, None, "{cause:?}");
    }
}
