//! No secret appears where it does not belong (G17, G18).
//!
//! A hub in its own process, with the most verbose logs, runs a scenario in all protocols in which
//! every key, secret, payload and message is a unique text. Then everything the hub wrote, printed
//! or answers to unknown callers is searched for these texts, byte by byte.

mod caught;
mod life;
mod process;
mod strangers;

use caught::{Canaries, Wanted};
use life::Life;
use process::Watched;

/// The file that holds the hub's own secret.
const OWN_SECRET: &str = "hub.key";

#[tokio::test(flavor = "multi_thread")]
async fn no_key_secret_or_foreign_payload_stands_where_it_does_not_belong() {
    let hub = Watched::start();
    let life = Life::live(&hub).await;
    life.canaries.assert_plausible();
    let asked = strangers::ask_everything(&hub, &life).await;
    let everything = life.canaries.everything();
    let metrics = hub.http.get(format!("{}/metrics", hub.url)).send().await.expect("an answer");
    let metrics = metrics.text().await.expect("text");
    assert!(metrics.contains("rialto_"), "{metrics}");
    everything.assert_not_in("the metrics", metrics.as_bytes());
    let stopped = hub.stop();
    assert!(stopped.logs.len() > 10_000, "the logs are not verbose: {}", stopped.logs);
    everything.assert_not_in("the logs", stopped.logs.as_bytes());
    everything.assert_not_in("standard output", stopped.printed.as_bytes());
    let files = in_files(&stopped, &life.canaries);
    println!(
        "canaries: {} secrets in {} forms and {} payloads, not in {} answers to strangers, {} bytes \
         of logs, {files} bytes of files",
        life.canaries.secrets.len(),
        life.canaries.secret_forms().len(),
        life.canaries.payloads.len(),
        asked,
        stopped.logs.len()
    );
}

/// Searches the data directory; returns the number of bytes searched.
fn in_files(stopped: &process::Stopped, canaries: &Canaries) -> usize {
    let mut all = 0;
    let mut stored = false;
    let secrets = Wanted::all(canaries.secret_forms());
    let made = stopped.data.path().join(process::MADE);
    assert_mode(&made, 0o700);
    assert_mode(&made.join(OWN_SECRET), 0o600);
    for entry in std::fs::read_dir(made).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("text");
        let bytes = std::fs::read(entry.path()).expect("a file");
        all += bytes.len();
        if name != OWN_SECRET {
            stored |= canaries.payloads.iter().all(|text| caught::holds(&bytes, text));
            secrets.assert_not_in(&name, &bytes);
        }
    }
    assert!(stored, "the payloads are kept somewhere, or this was the wrong directory");
    all
}

/// Checks that no other user can read it.
fn assert_mode(path: &std::path::Path, wanted: u32) {
    let about = std::fs::metadata(path).expect("it is there");
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777;
        assert_eq!(mode, wanted, "{} has mode {mode:o}", path.display());
    }
    #[cfg(not(unix))]
    let _ = (about, wanted);
}
