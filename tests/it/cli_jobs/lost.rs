//! A job, an agent or a delivery that does not exist: the error says where to look.

use super::kit::{CliFixture, Ran};

const NONE: &str = "11111111-1111-4111-8111-111111111111";

/// Checks for a not-found error and its suggested command in both forms.
async fn not_found(fixture: &CliFixture, line: &[&str], next: &str) {
    fixture.run(line).await.failed(3, next);
    let ran: Ran = fixture.run(&[line, &["--json"]].concat()).await.expect(3);
    assert!(ran.str("/next").contains(next), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_not_there_is_looked_for_in_the_list() {
    let fixture = CliFixture::start().await;
    for line in [
        &["job", "show", NONE][..],
        &["job", "watch", NONE],
        &["job", "offers", NONE],
        &["job", "accept", NONE, "--from", "7"],
        &["job", "cancel", NONE],
        &["job", "trace", NONE],
    ] {
        not_found(&fixture, line, "`rialto job ls`").await;
    }
    for line in [&["job", "decline", NONE][..], &["job", "submit", NONE, "--output", "{}"]] {
        not_found(&fixture, line, "`rialto job ls --worked`").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_calls_and_accounts_are_looked_for_where_they_are_listed() {
    let fixture = CliFixture::start().await;
    let line = ["job", "post", "--skill", "s", "--input", "{}", "--budget", "0", "--to", "nobody"];
    not_found(&fixture, &line, "`rialto agent search`").await;
    not_found(&fixture, &["rep", "show", "nobody"], "`rialto agent search`").await;
    not_found(&fixture, &["webhook", "resend", "42"], "`rialto webhook ls`").await;
    not_found(&fixture, &["wallet", "balance", "nobody"], "RIALTO_OPERATOR_KEY").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_job_is_answered_with_one_that_is() {
    let fixture = CliFixture::start().await;
    for (skill, input) in [("shout", "[1]"), ("", "{}")] {
        let line = ["job", "post", "--skill", skill, "--input", input, "--budget", "0"];
        fixture.run(&line).await.failed(2, "rialto job post --skill");
    }
    fixture.run(&["webhook", "test"]).await.failed(5, "--endpoint");
}
