//! Invalid arguments and invalid files: the error says how to correct them.

use std::process::Command;

use super::kit::Cli;
use crate::kit::TestHub;

#[tokio::test]
async fn a_file_that_is_no_toml_is_shown_where_it_is_wrong() {
    let cli = Cli::new();
    let file = cli.file("agent.toml", "[[skill]]\nname = \"sum\"\nprice = 0.05\nexec = \"cat\"\n");
    let ran = cli.run(&["agent", "run", "--file", &file]).await.expect(2);
    for line in ["3 | price = 0.05", "[[skill]]", "price = \"0.05\""] {
        assert!(ran.err.lines().any(|one| one == line), "{line} is not in {}", ran.err);
    }
    assert!(!ran.err.contains("\\n"), "{}", ran.err);
    let document = cli.run(&["agent", "run", "--file", &file, "--json"]).await.expect(2).json();
    assert!(document["error"].as_str().is_some_and(|text| text.contains('\n')), "{document}");
}

#[tokio::test]
async fn a_line_that_is_not_understood_has_a_next_step_for_programs_too() {
    let cli = Cli::new();
    for line in [
        &["job", "post", "--json"][..],
        &["--json", "job"],
        &["nonsense", "--json"],
        &["job", "show", "--json"],
        &["job", "ls", "--limit", "0", "--json"],
        &["webhook", "resend", "first", "--json"],
        &["wallet", "transfer", "--to", "globex", "1", "--id", "once", "--json"],
        &["key", "did", "--json"],
        &["config", "check", "--config", "none.toml", "--json"],
    ] {
        let document = cli.run(line).await.expect(2).json();
        for member in ["error", "next"] {
            let text = document[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "no {member} for {line:?}: {document}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_told_before_any_hub_is_asked() {
    let hub = TestHub::serve(&[]).await;
    let cli = Cli::new().with("RIALTO_HUB", &hub.url);
    let cli = cli.with("RIALTO_KEY", "b\nad");
    cli.run(&["job", "ls"]).await.failed(4, &["RIALTO_KEY does not contain a key"]);
    cli.run(&["msg", "send", "--to", "bob", "Hello!"])
        .await
        .failed(4, &["RIALTO_KEY does not contain a key"]);
    assert!(cli.run(&["job", "ls", "--json"]).await.expect(4).json()["next"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unregistered_owner_is_paid_only_with_an_explicit_flag() {
    // A hub that opens an account for every name.
    let hub = TestHub::open(&[("ledger.welcome_grant", "1.00")]).await;
    let acme = hub.orchestrator("acme").await;
    hub.orchestrator("globex").await;
    let cli = Cli::at(&hub.url, &acme.key).await;
    let line = ["wallet", "transfer", "0.01", "--to"];
    let to = |name: &'static str| [&line[..], &[name]].concat();
    cli.run(&to("globx")).await.failed(3, &["belongs to globx", "--anyway"]);
    assert_eq!(hub.balance("acme").await.0, "1.00");
    cli.run(&to("globex")).await.ok();
    cli.run(&[&to("globx")[..], &["--anyway"]].concat()).await.ok();
    assert_eq!(hub.balance("globx").await.0, "0.01");
}

#[test]
fn the_way_into_a_new_agents_directory_is_a_line_a_shell_takes() {
    let above = tempfile::TempDir::new().expect("a directory");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        command.current_dir(above.path()).args(["init", "agent", "--lang", "sh"]).args(more);
        String::from_utf8(command.output().expect("it runs").stdout).expect("UTF-8")
    };
    let told = run(&["--dir", "my agent"]);
    assert!(told.lines().any(|line| line == "  cd 'my agent'"), "{told}");
    let document: serde_json::Value =
        serde_json::from_str(&run(&["--dir", "it's", "--json"])).expect("one document");
    assert_eq!(document["next"][0], r"cd 'it'\''s'");
    let here: serde_json::Value = serde_json::from_str(&run(&["--json"])).expect("one document");
    assert_eq!(here["next"][0], "rialto agent run");
}
