//! `rialto job ls` and `rialto job show`.

use serde_json::{Value, json};

use super::kit::CliFixture;

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|job| job["id"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_by_side_and_by_whether_they_are_over() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let (done, live) = (fixture.posted("shout", &[]).await, fixture.posted("shout", &[]).await);
    fixture.work(&worker, &done, json!({})).await;
    for (more, wanted) in [
        (&[][..], &[live.as_str(), done.as_str()][..]),
        (&["--state", "live"], &[live.as_str()]),
        (&["--state", "ended"], &[done.as_str()]),
        (&["--limit", "1"], &[live.as_str()]),
    ] {
        let line = [&["job", "ls", "--json"], more].concat();
        let list = fixture.run(&line).await.ok().json();
        assert_eq!(ids(&list), wanted, "{more:?}");
        let list = fixture.run_for(&worker, &[&line[..], &["--worked"]].concat()).await.ok().json();
        assert_eq!(ids(&list), wanted, "{more:?}");
    }
    assert_eq!(
        fixture.run_for(&worker, &["job", "ls", "--asked", "--json"]).await.ok().json(),
        json!([])
    );
    let table = fixture.run(&["job", "ls"]).await.ok().out;
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split("  ").filter(|word| !word.is_empty()).collect())
        .collect();
    assert_eq!(lines[0][..3], ["ID", "STATE", "SKILL"], "{table}");
    assert_eq!(lines[1][..2], [live.as_str(), "assigned"], "{table}");
    assert_eq!(lines[2][..2], [done.as_str(), "completed"], "{table}");
    assert!(lines[2][3] == "shop's agent" && lines[2][4].trim() == "0.05", "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_jobs_than_a_page_has_are_all_listed() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0", None).await;
    for _ in 0..201 {
        fixture.hire(&fixture.boss, &worker, "shout", "0.00").await;
    }
    let list = fixture.run(&["job", "ls", "--limit", "500", "--json"]).await.ok().json();
    assert_eq!(ids(&list).len(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_to_its_parties_in_words_and_as_the_hub_has_it() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &["--id", "7c9e6679-7425-40de-944b-e07fc1f90ae7"]).await;
    fixture.work(&worker, &id, json!({"text": "HELLO\u{202e}"})).await;
    // By the hub's id and by the requester's own.
    for name in [id.as_str(), "7c9e6679-7425-40de-944b-e07fc1f90ae7"] {
        let told = fixture.run(&["job", "show", name]).await.ok().out;
        for line in [
            &format!("job        {id} completed"),
            "skill      shout",
            "requester  boss's orchestrator",
            "worker     shop's agent",
            "money      budget 0.10, price 0.05, paid 0.05",
            "  \"text\": \"hello\"",
            "  \"text\": \"HELLO\\u202e\"",
        ] {
            assert!(told.lines().any(|one| one == line), "{line} is not in\n{told}");
        }
    }
    let path = format!("/v1/jobs/{id}");
    for party in [&fixture.boss, &worker] {
        let shown = fixture.run_for(party, &["job", "show", &id, "--json"]).await.ok().json();
        assert_eq!(shown, fixture.get(&path, Some(&party.key)).await.expect(200).json());
    }
    let stranger = fixture.orchestrator("stranger").await;
    fixture.run_for(&stranger, &["job", "show", &id]).await.failed(3, "not visible to this key");
    let ran = fixture.run_for(&stranger, &["job", "show", &id, "--json"]).await.expect(3);
    assert!(ran.json()["error"].is_string(), "{ran:#?}");
}
