//! Ownership of a local agent: it belongs to the folder with its file, whatever its name and
//! whichever folder starts first.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use super::kit::{Place, Runtime, key_of};
use crate::kit::{TestHub, output};

const FLAGS: [&str; 6] = ["--skill", "shout", "--price", "0.05", "--exec", "echo '{}'"];

/// A folder with an agent of this name.
fn folder(place: &Place, folder: &str, name: &str) {
    fs::create_dir_all(place.path(folder)).expect("a folder");
    let skill = "[[skill]]\nname = \"shout\"\nprice = \"0.05\"\nexec = \"echo '{}'\"\n";
    place.file(&format!("{folder}/agent.toml"), &format!("name = \"{name}\"\n{skill}"));
}

async fn started(place: &Place, hub: &TestHub, folder: &str) -> Runtime {
    let (file, said) = (format!("{folder}/agent.toml"), format!("said-{folder}"));
    // Removes the output of an earlier run.
    let _ = fs::remove_file(place.path(&said));
    place.at_work(hub, &said, &["--file", &file]).await
}

/// Starts it and stops it again; returns its id.
async fn id_of(place: &Place, hub: &TestHub, folder: &str) -> Value {
    let mut runtime = started(place, hub, folder).await;
    let id = runtime.said("at_work").expect("said")["agent_id"].clone();
    assert!(runtime.terminate().await.success());
    id
}

/// An agent that refuses to start; returns its error.
fn refused(place: &Place, hub: &TestHub, arguments: &[&str]) -> Value {
    let mut command = place.rialto();
    command.args(["agent", "run", "--json", "--hub", &hub.url]).args(arguments);
    let Output { status, stdout, .. } = output(&mut command).expect("it runs");
    assert_eq!(status.code(), Some(5), "{}", String::from_utf8_lossy(&stdout));
    serde_json::from_slice(&stdout).expect("one document")
}

/// The keys below a folder.
fn keys_below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).expect("a directory").flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(keys_below(&path)),
            path if path.ends_with("agent.key") => found.push(path),
            _ => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn two_folders_keep_their_agents_apart_in_whatever_order_they_start() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    folder(&place, "one", "shout");
    folder(&place, "two", "shout");
    let one = id_of(&place, &hub, "one").await;
    // The name belongs to the other folder, also while nothing runs there.
    let told = refused(&place, &hub, &["--file", "two/agent.toml"]);
    let (error, next) = (told["error"].to_string(), told["next"].to_string());
    let theirs = place.path("one").canonicalize().expect("a path");
    assert!(error.contains(theirs.to_str().expect("text")), "{told}");
    assert!(next.contains("`name`") && next.contains("--name"), "{told}");
    folder(&place, "two", "shout-two");
    let two = id_of(&place, &hub, "two").await;
    assert_ne!(one, two);
    for (name, id) in [("two", &two), ("one", &one)] {
        assert_eq!(id_of(&place, &hub, name).await, *id, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_beside_the_file_for_its_owner_alone_and_moves_with_the_folder() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    folder(&place, "here", "shout");
    let id = id_of(&place, &hub, "here").await;
    let keys = keys_below(&place.path("here"));
    let [key] = keys.as_slice() else { panic!("one key, not {keys:?}") };
    let mode = fs::metadata(key).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(place.text("here/.rialto/.gitignore"), "*\n", "keys are kept out of repositories");
    fs::rename(place.path("here"), place.path("there")).expect("moved");
    assert_eq!(id_of(&place, &hub, "there").await, id);
    // Commands that use its name find the key there.
    let mut listed = place.rialto();
    listed.args(["job", "ls", "--as", "shout", "--hub", &hub.url]);
    let mut runtime = started(&place, &hub, "there").await;
    let listed = output(&mut listed).expect("it runs");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(runtime.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_folder_never_runs_as_the_agent_it_was_copied_from() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    folder(&place, "first", "shout");
    let first = id_of(&place, &hub, "first").await;
    let mut copy = std::process::Command::new("cp");
    copy.arg("-r").arg(place.path("first")).arg(place.path("copy"));
    assert!(copy.status().expect("cp runs").success());
    folder(&place, "copy", "shout-copy");
    let told = refused(&place, &hub, &["--file", "copy/agent.toml"]);
    assert!(told["error"].to_string().contains("is a copy of"), "{told}");
    assert!(told["next"].to_string().contains("remove"), "{told}");
    fs::remove_dir_all(place.path("copy/.rialto")).expect("removed");
    assert_ne!(id_of(&place, &hub, "copy").await, first);
    assert_eq!(id_of(&place, &hub, "first").await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_gets_another_name_in_its_file_stays_who_it_is() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    folder(&place, "one", "shout");
    folder(&place, "two", "shout");
    let one = id_of(&place, &hub, "one").await;
    folder(&place, "one", "louder");
    assert_eq!(id_of(&place, &hub, "one").await, one);
    // The old name is free.
    assert_ne!(id_of(&place, &hub, "two").await, one);
    // A name on the command line is a separate agent.
    let beside = ["--file", "one/agent.toml", "--name", "beside"];
    let mut other = place.at_work(&hub, "said-beside", &beside).await;
    assert_ne!(other.said("at_work").expect("said")["agent_id"], one);
    assert!(other.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_an_older_version_kept_in_the_context_moves_to_its_folder() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    let mut runtime = place.at_work(&hub, "said", &FLAGS).await;
    let id = runtime.said("at_work").expect("said")["agent_id"].clone();
    assert!(runtime.terminate().await.success());
    let key = key_of(&place, "shout");
    // Older versions did not record which folder owns a name.
    fs::remove_file(key.with_file_name("claim.json")).expect("there");
    folder(&place, "one", "shout");
    folder(&place, "two", "shout");
    assert_eq!(id_of(&place, &hub, "one").await, id);
    assert!(!key.exists(), "the key has moved");
    refused(&place, &hub, &["--file", "two/agent.toml"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_a_file_belongs_to_the_folder_it_was_started_in() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    let mut runtime = place.at_work(&hub, "said", &FLAGS).await;
    assert!(runtime.terminate().await.success());
    fs::create_dir(place.path("elsewhere")).expect("a folder");
    let mut command = place.rialto();
    command.current_dir(place.path("elsewhere"));
    command.args(["agent", "run", "--json", "--hub", &hub.url]).args(FLAGS);
    let told = output(&mut command).expect("it runs");
    assert_eq!(told.status.code(), Some(5), "{}", String::from_utf8_lossy(&told.stdout));
    let told: Value = serde_json::from_slice(&told.stdout).expect("one document");
    assert!(told["next"].as_str().is_some_and(|next| next.contains("--name")), "{told}");
    let here = place.at_work(&hub, "again", &FLAGS).await;
    assert_eq!(here.said("at_work").expect("said")["agent"], json!("shout"));
}
