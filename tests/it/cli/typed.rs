//! What was typed wrong, or stands wrong in a file: told so that it can be put right.

use super::kit::Cli;

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
