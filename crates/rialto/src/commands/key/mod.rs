//! `rialto key`: the keys of an agent at the hub; agora keys, and envelopes signed with them.
//!
//! A file with an agora key has the seed on the first line and the public half below, and is readable only by the
//! owner.

mod envelope;
mod hub_keys;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rialto_client::agora::{Agent, Identity, Profile, PublicKey, Seed, Server};
use rialto_engine::secret::{ENV_VAR, FILE_NAME, HubSecret};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::Verifier;
use serde_json::{Value, json};

use super::key_file::ReservedKeyFile;
use super::{CliError, CliResult, Exit, HubOptions, output, print_error, runtime};

/// The variable for a key that is not in a file.
const VARIABLE: &str = "RIALTO_AGORA_KEY";
/// The maximum length of a key file.
const BYTES_MAX: u64 = 64 << 10;
/// How the hub's own key is derived from its secret (HKDF-SHA-256).
const SALT: &str = "rialto agora alias v1";
const INFO: &str = "hub";

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List your agent's keys at the hub, with their limits and what they spent today
    Ls(HubOptions),
    /// Issue one more key of your agent, with limits
    Issue(hub_keys::IssueArgs),
    /// Revoke one key of your agent
    Revoke(hub_keys::RevokeArgs),
    /// Create a new agora key
    New {
        /// File to write
        #[arg(long, value_name = "FILE", default_value = "agora.key")]
        out: PathBuf,
    },
    /// Show the public half of an agora key, or of the hub's own key
    Show {
        #[command(flatten)]
        source: AgoraKeyOptions,
        /// Show the key of the hub with this data directory (its hub.key, or env RIALTO_HUB_SECRET)
        #[arg(long, value_name = "DIR", conflicts_with = "key_file")]
        data: Option<PathBuf>,
    },
    /// Convert a public agora key to its other forms
    Did {
        /// A did:key, or the raw key as 43 characters of Base64Url or 64 hex digits
        #[arg(allow_hyphen_values = true)]
        key: String,
    },
    /// Sign an envelope
    Sign(envelope::SignArgs),
    /// Verify the signature and freshness of an envelope
    Verify(envelope::VerifyArgs),
    /// Print JSON in its canonical form (RFC 8785)
    Canonical {
        /// File with the JSON; - is standard input
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// Print what the sender of this envelope signs: with sender.signature set to \"\"
        #[arg(long)]
        to_sign: bool,
    },
    /// Send HELLO to a hub and print its WELCOME
    Hello(HelloArgs),
}

#[derive(clap::Args)]
struct HelloArgs {
    #[command(flatten)]
    source: AgoraKeyOptions,
    /// Base URL of the hub
    #[arg(
        long,
        env = "RIALTO_HUB",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:7425"
    )]
    hub: String,
    /// Name of the agent
    #[arg(long)]
    name: Option<String>,
    /// Ask for an inbox token
    #[arg(long)]
    inbox: bool,
}

pub fn run(args: &Args) -> Exit {
    let json = args.json;
    let done = match &args.verb {
        Verb::Ls(options) => return options.run(hub_keys::list(options)),
        Verb::Issue(args) => return args.options.run(hub_keys::issue(args)),
        Verb::Revoke(args) => return args.options.run(hub_keys::revoke(args)),
        Verb::New { out } => create_key(out, json),
        Verb::Show { source, data } => show(source, data.as_deref(), json),
        Verb::Did { key } => convert_key(key, json),
        Verb::Sign(args) => envelope::sign(args, json),
        Verb::Verify(args) => envelope::verify(args, json),
        Verb::Canonical { file, to_sign } => envelope::print_canonical(file, *to_sign, json),
        Verb::Hello(args) => match runtime() {
            Ok(runtime) => runtime.block_on(say_hello(args)),
            Err(error) => return print_error(error),
        },
    };
    done.unwrap_or_else(|cli_error| cli_error.report(json))
}

fn create_key(out: &Path, json: bool) -> CliResult {
    let forms = KeyForms::of(create(out)?.key());
    let path = out.display().to_string();
    let mut document = forms.to_json();
    document["key_file"] = path.as_str().into();
    Ok(output::print(json, document, || format!("{}\nkey file   {path}", forms.lines())))
}

fn show(source: &AgoraKeyOptions, data: Option<&Path>, json: bool) -> CliResult {
    let key = match data {
        Some(dir) => hub_key(dir, std::env::var(ENV_VAR).ok())?,
        None => source.identity()?.key(),
    };
    let forms = KeyForms::of(key);
    Ok(output::print(json, forms.to_json(), || forms.lines()))
}

fn convert_key(key: &str, json: bool) -> CliResult {
    let key = PublicKey::parse(key.trim()).map_err(|bad| {
        let next = "write it like did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s";
        CliError::usage(format!("the key {bad}"), next)
    })?;
    let forms = KeyForms::of(key);
    Ok(output::print(json, forms.to_json(), || forms.lines()))
}

async fn say_hello(args: &HelloArgs) -> CliResult {
    let identity = args.source.identity()?;
    let agent = Agent::new(identity, Server::discover(&args.hub).await?);
    let profile = Profile { name: args.name.clone(), ..Profile::default() };
    let welcome = agent.hello(&profile, args.inbox).await?;
    Ok(output::print_data(welcome.raw))
}

/// The hub's key. Reading it must not create one.
fn hub_key(dir: &Path, variable: Option<String>) -> CliResult<PublicKey> {
    let path = dir.join(FILE_NAME);
    let in_file = path.exists();
    if !in_file && variable.is_none() {
        let next = "a hub creates it at its first start; check the data directory";
        return Err(CliError::not_found(format!("there is no {}", path.display()), next));
    }
    let variable = variable.filter(|_| !in_file);
    let secret = HubSecret::load_or_create(dir, variable);
    let secret = secret.map_err(|error| CliError::plain(error.to_string()))?;
    Ok(Identity::new(&Seed::from_bytes(secret.derive(SALT, INFO))).key())
}

/// All forms of one key.
struct KeyForms {
    did: String,
    raw: String,
    hex: String,
    /// Whether signatures of this key are accepted.
    usable: bool,
}

impl KeyForms {
    fn of(key: PublicKey) -> Self {
        let hex = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let raw = base64url::encode(key.as_bytes());
        Self { did: key.did(), raw, hex, usable: Verifier::new(key).is_ok() }
    }

    /// As lines for people.
    fn lines(&self) -> String {
        let Self { did, raw, hex, usable } = self;
        let weak = if *usable {
            ""
        } else {
            "\nweak       its signatures can be forged; it is rejected everywhere"
        };
        format!("did        {did}\nbase64url  {raw}\nhex        {hex}{weak}")
    }

    /// As JSON for programs.
    fn to_json(&self) -> Value {
        let Self { did, raw, hex, usable } = self;
        json!({"did": did, "public_key": raw, "public_key_hex": hex, "usable": usable})
    }
}

/// The options of commands that need a secret key.
#[derive(clap::Args)]
pub struct AgoraKeyOptions {
    /// File with the key, as written by `key new`; otherwise env RIALTO_AGORA_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl AgoraKeyOptions {
    /// The identity of the given key.
    pub fn identity(&self) -> CliResult<Identity> {
        if let Some(path) = &self.key_file {
            return load(path);
        }
        let make = "create one with `rialto key new --out FILE` and pass it with --key-file";
        let set = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
        let text = set.ok_or_else(|| CliError::usage("no key is given", make))?;
        let seed = Seed::read(text.trim()).ok_or_else(|| {
            let message =
                format!("{VARIABLE} is not `ed25519-seed:` and 43 characters of Base64Url");
            CliError::usage(message, make)
        })?;
        Ok(Identity::new(&seed))
    }
}

/// Reads a key file.
fn load(path: &Path) -> CliResult<Identity> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    let shown = path.display();
    let wrong = |message: String| {
        CliError::usage(message, format!("`rialto key new --out {shown}` creates a key file"))
    };
    read.map_err(|error| wrong(format!("cannot read {shown}: {error}")))?;
    let seed = Seed::read(&text);
    let seed = seed.ok_or_else(|| wrong(format!("{shown} has no seed on its first line")))?;
    Ok(Identity::new(&seed))
}

/// Creates a key and a new file for it that only its owner can read.
fn create(path: &Path) -> CliResult<Identity> {
    let reserved = ReservedKeyFile::new(path)?;
    let seed = Seed::random()?;
    let identity = Identity::new(&seed);
    let text = format!("{}\ndid {}\n", seed.reveal(), identity.did());
    let unwritten = |error| CliError::plain(format!("cannot write {}: {error}", path.display()));
    reserved.write_text(&text).map_err(unwritten)?;
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_key_has_its_three_forms() {
        let did = "did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s";
        let raw = "OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y";
        let hex = "39578cf7396eeb01117e5ccbcdbbb61d4306d2ca3d3155ab72dd5250e4f25bd6";
        for text in [did, raw, hex] {
            let forms = KeyForms::of(PublicKey::parse(text).expect(text));
            assert_eq!(
                forms.lines(),
                format!("did        {did}\nbase64url  {raw}\nhex        {hex}")
            );
            assert_eq!(forms.to_json()["usable"], true);
        }
        let weak = KeyForms::of(PublicKey::from_bytes([0; 32]));
        assert!(weak.lines().contains("\nweak ") && weak.to_json()["usable"] == false);
    }

    #[test]
    fn a_key_is_made_once_and_read_back_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice.agora");
        let made = create(&path).expect("a key");
        assert_eq!(load(&path).expect("a key").did(), made.did());
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(
            text.starts_with("ed25519-seed:") && text.ends_with(&format!("\ndid {}\n", made.did()))
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(create(&path).is_err(), "never overwritten");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), text);
        std::fs::write(&path, "ca_1\n").expect("written");
        let cli_error = load(&path).expect_err("no seed");
        assert!(cli_error.message.contains("no seed") && cli_error.next.is_some());
    }

    #[test]
    fn the_hubs_key_is_that_of_the_book_and_looking_makes_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let cli_error = hub_key(dir.path(), None).expect_err("none");
        assert_eq!(cli_error.exit, Exit::NotFound);
        assert!(!dir.path().join(FILE_NAME).exists());
        let hex: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
        let key = hub_key(dir.path(), Some(hex)).expect("a key");
        assert_eq!(key.did(), "did:key:z6MkshWLjEnbWLWHeQeFqmuLGuu45GiRuTykNCTWboBhBhnR");
        assert!(!dir.path().join(FILE_NAME).exists());
    }
}
