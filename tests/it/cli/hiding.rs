//! Keys are sent only to their own hub, and kept files are readable by their owner only.

use super::kit::{Cli, Stage};

const NOBODY: &str = r#"{"items":[],"next_cursor":null}"#;

/// The credential that a hub got with a command that every hub answers.
async fn shown(cli: &Cli, stage: &Stage, more: &[&str]) -> Option<String> {
    let before = stage.heard().len();
    cli.run(&[&["agent", "search", "--json"][..], more].concat()).await.ok();
    let heard = stage.heard();
    assert_eq!(heard.len(), before + 1, "this hub was asked, once");
    assert_eq!(heard[before].path, "/v1/agents");
    heard[before].authorization.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contexts_key_is_shown_to_its_own_hub_alone() {
    let (own, other) = (
        Stage::start(&[("/v1/agents", NOBODY)]).await,
        Stage::start(&[("/v1/agents", NOBODY)]).await,
    );
    let cli = Cli::at(&own.url, "rk_secret").await;
    let bearer = Some("Bearer rk_secret".to_owned());
    assert_eq!(shown(&cli, &own, &[]).await, bearer);
    assert_eq!(shown(&cli, &own, &["--hub", &format!("{}/", own.url)]).await, bearer);
    assert_eq!(shown(&cli, &other, &["--hub", &other.url]).await, None);
    let cli = cli.with("RIALTO_HUB", &other.url);
    assert_eq!(shown(&cli, &other, &[]).await, None, "not by the environment either");
    assert_eq!(shown(&cli, &other, &["--context", "here"]).await, None, "nor by its name");
    let line = ["wallet", "balance"];
    cli.run(&line).await.failed(4, &["no key given", "--key-file"]);
    assert_eq!(other.heard().len(), 3, "no request without a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_come_before_the_environment_and_that_before_contexts() {
    let stage = Stage::start(&[("/v1/agents", NOBODY)]).await;
    let cli = Cli::at(&stage.url, "rk_current").await;
    let other = cli.file("other.key", "rk_other");
    let add = ["context", "add", "other", "--hub", &stage.url, "--key-file", &other];
    cli.run(&add).await.ok();
    let flag = cli.file("flag.key", &format!("rk_flag\nhub {}\n", stage.url));
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    assert_eq!(shown(&cli, &stage, &[]).await, bearer("rk_current"));
    assert_eq!(shown(&cli, &stage, &["--context", "other"]).await, bearer("rk_other"));
    let cli = cli.with("RIALTO_CONTEXT", "other");
    assert_eq!(shown(&cli, &stage, &[]).await, bearer("rk_other"));
    let cli = cli.with("RIALTO_KEY", "rk_env");
    assert_eq!(shown(&cli, &stage, &[]).await, bearer("rk_env"));
    assert_eq!(shown(&cli, &stage, &["--key-file", &flag]).await, bearer("rk_flag"));
    // A key file names its hub, so the context is not used.
    let cli = cli.with("RIALTO_CONTEXT", "none-such");
    assert_eq!(shown(&cli, &stage, &["--key-file", &flag]).await, bearer("rk_flag"));
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_kept_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let cli = Cli::at("http://127.0.0.1:9", "rk_secret").await;
    let mode = |part: &str| {
        let found = std::fs::metadata(cli.home().join(part)).expect(part);
        found.permissions().mode() & 0o777
    };
    for (part, wanted) in [
        ("", 0o700),
        ("contexts", 0o700),
        ("contexts/here", 0o700),
        ("contexts/here/me.key", 0o600),
    ] {
        assert_eq!(mode(part), wanted, "{part}");
    }
}
