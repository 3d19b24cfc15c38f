//! Which environment variables a handler gets from its agent.

use std::collections::BTreeMap;

use serde_json::json;

use super::kit::Place;
use crate::kit::TestHub;

/// Saves its environment and answers every job.
const KEEPS: &str = r#"env >seen; while read job; do
  id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
  echo "{\"job_id\":\"$id\",\"output\":{}}"
done"#;

#[tokio::test]
async fn a_handler_gets_no_secret_of_its_agent_and_what_is_passed_by_name() {
    let hub = TestHub::serve(&[]).await;
    let boss = hub.orchestrator("boss").await;
    for stays in [false, true] {
        let place = Place::new();
        place.file("keeps.sh", KEEPS);
        let owner = if stays { "stays" } else { "runs once" };
        let own = hub.agent(owner, "old", "0", None).await;
        let exec = if stays { "sh keeps.sh" } else { "env >seen; echo '{}'" };
        let mut flags = vec!["--skill", "keep", "--price", "0", "--exec", exec];
        flags.extend(["--env", "PASSED_ON", "--env", "NOT_SET"]);
        flags.extend(stays.then_some("--persistent"));
        let env = [
            ("RIALTO_KEY", own.key.as_str()),
            ("RIALTO_OPERATOR_KEY", "ro_secret"),
            ("RIALTO_HUB_SECRET", "secret"),
            ("CLOUD_TOKEN", "secret"),
            ("HTTPS_PROXY", "http://me:secret@127.0.0.1:9"),
            ("PASSED_ON", "on purpose"),
            ("LC_TIME", "C"),
        ];
        let runtime = place.at_work_with(&hub, "said", &flags, &env).await;
        let body = json!({"skill": "keep", "input": {}, "budget": 0, "to": own.id});
        let job = hub.post("/v1/jobs?wait=30", Some(&boss.key), &body).await.expect(201);
        assert_eq!(job.at("/state"), "completed", "{}", job.text);
        let seen = place.text("seen");
        let seen: BTreeMap<&str, &str> =
            seen.lines().filter_map(|line| line.split_once('=')).collect();
        assert_eq!(seen.get("PASSED_ON"), Some(&"on purpose"));
        assert_eq!(seen.get("LC_TIME"), Some(&"C"));
        assert!(seen.contains_key("PATH"), "{seen:?}");
        assert!(!seen.contains_key("NOT_SET"), "{seen:?}");
        let leaked = |name: &&str| name.starts_with("RIALTO_") || name.starts_with("CARGO");
        assert_eq!(seen.keys().copied().find(leaked), None);
        assert!(seen.values().all(|value| !value.contains("secret")), "{seen:?}");
        runtime.kill();
    }
    hub.stop().await;
}

#[test]
fn a_key_of_the_agent_is_passed_on_by_no_name() {
    let place = Place::new();
    let flags = ["agent", "run", "--skill", "keep", "--price", "0", "--exec", "cat"];
    let mut command = place.rialto();
    command.args(flags).args(["--env", "RIALTO_KEY"]);
    let output = crate::kit::output(&mut command).expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("RIALTO_KEY cannot be passed on"), "{said}");
}
