//! `rialto doctor`: checks everything a client command needs, or a hub's database, and reports
//! problems.

mod database;

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::{Client, Response};
use rialto_client::call::root_cause;
use rialto_client::{CallError, Hub};
use serde_json::{Value, json};

use super::context::{Context, Home};
use super::hub_options::is_agent_unknown;
use super::v1::{CallerView, millionths};
use super::{CliError, CliResult, Exit, HubOptions, V1, escape_line, key_file, output};

/// Time limit for a healthy hub.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Differences below this are harmless: the header has whole seconds, and answers take time.
const SKEW_FINE: SignedDuration = SignedDuration::from_secs(5);
/// From here on signed messages, which are valid for a minute, are sometimes refused.
const SKEW_MAX: SignedDuration = SignedDuration::from_secs(30);
/// Tools that handlers often use. A hub needs none of them.
const TOOLS: [&str; 2] = ["python3", "node"];

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: HubOptions,
    /// Check this PostgreSQL database of a hub instead
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

/// One check and its result.
struct HealthCheck {
    name: &'static str,
    /// `ok`; `warn`: it works, but may not be intended; `fail`: something will not work.
    status: &'static str,
    finding: String,
    /// What to do about it.
    next: Option<String>,
}

impl HealthCheck {
    fn ok(name: &'static str, finding: impl Into<String>) -> Self {
        Self { name, status: "ok", finding: finding.into(), next: None }
    }

    fn warn(name: &'static str, finding: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: "warn", next: Some(next.into()), ..Self::ok(name, finding) }
    }

    fn fail(name: &'static str, finding: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: "fail", ..Self::warn(name, finding, next) }
    }

    /// A check that failed with an error.
    fn from_error(name: &'static str, error: impl Into<CliError>) -> Self {
        let CliError { message, next, .. } = error.into();
        // The hint must not point to the command that is running.
        let next = next.filter(|next| !next.contains("`rialto doctor`"));
        Self { next, ..Self::fail(name, message, "") }
    }

    fn has_failed(&self) -> bool {
        self.status == "fail"
    }

    fn line(&self) -> String {
        let next = self.next.as_ref().map(|next| format!("; {next}")).unwrap_or_default();
        escape_line(&format!("{:4}  {:8}  {}{next}", self.status, self.name, self.finding))
    }

    fn to_json(&self) -> Value {
        json!({"check": self.name, "verdict": self.status, "what": self.finding, "next": self.next})
    }
}

pub fn run(args: &Args) -> Exit {
    match &args.database_url {
        Some(url) => report(args.options.json, &database::checks(url)),
        None => args.options.run(run_checks(&args.options)),
    }
}

async fn run_checks(options: &HubOptions) -> CliResult {
    let context = options.context();
    let mut checks = vec![check_home(context.as_ref().ok()), check_context(context)];
    match options.client() {
        Ok((api, keys)) => checks.extend(hub_checks(options, &api, keys.is_some()).await),
        Err(error) => checks.push(HealthCheck::from_error("key", error)),
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    checks.extend(TOOLS.map(|tool| check_tool(tool, &folders)));
    Ok(report(options.json, &checks))
}

/// Prints the checks. The exit code is that of the worst.
fn report(as_json: bool, checks: &[HealthCheck]) -> Exit {
    let is_fine = !checks.iter().any(HealthCheck::has_failed);
    let all: Vec<_> = checks.iter().map(HealthCheck::to_json).collect();
    output::print(as_json, json!({"ok": is_fine, "checks": all}), || {
        checks.iter().map(HealthCheck::line).collect::<Vec<_>>().join("\n")
    });
    if is_fine { Exit::Ok } else { Exit::Failed }
}

/// The home directory exists, is readable, and only its owner can read it.
fn check_home(context: Option<&Context>) -> HealthCheck {
    let Some(home) = Home::find() else {
        let finding = "there is no home directory, so no key can be saved";
        return HealthCheck::warn("home", finding, "set RIALTO_HOME");
    };
    let (path, shown) = (home.path(), home.path().display());
    if !path.exists() {
        return HealthCheck::ok("home", format!("{shown}, created when something is saved"));
    }
    if !path.is_dir() {
        let finding = format!("{shown} is not a directory, so no key can be saved");
        return HealthCheck::fail("home", finding, "set RIALTO_HOME to a directory");
    }
    let key = context.and_then(Context::key_path).filter(|path| path.exists());
    if let Some(key) = key.filter(|key| is_open(key)) {
        let key = key.display();
        let next = format!("`chmod 600 {key}`, and `rialto agent rekey`");
        return HealthCheck::fail("home", format!("other users can read {key}"), next);
    }
    if !is_open(path) {
        return HealthCheck::ok("home", format!("{shown}, readable by you only"));
    }
    let mut entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    match entries.find(|entry| is_open(&entry.path())) {
        Some(entry) => {
            let finding = format!("other users can read {}", entry.path().display());
            let next = format!("`chmod -R go= {shown}`, and `rialto agent rekey`");
            HealthCheck::fail("home", finding, next)
        }
        None => {
            let finding = format!("other users can list {shown}, but not read its files");
            HealthCheck::warn("home", finding, format!("`chmod 700 {shown}`"))
        }
    }
}

/// Whether users other than the owner have any access.
#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}

fn check_context(context: CliResult<Context>) -> HealthCheck {
    match context {
        Err(error) => HealthCheck::from_error("context", error),
        Ok(context) if !context.is_saved() => {
            let finding = format!("{}, created when something is saved in it", context.name());
            HealthCheck::ok("context", finding)
        }
        Ok(context) => {
            HealthCheck::ok("context", format!("{} at {}", context.name(), context.hub()))
        }
    }
}

/// The checks that need a hub: it answers, accepts writes and has the same time, and it knows the
/// caller and the agents of this machine.
async fn hub_checks(options: &HubOptions, api: &V1, has_key: bool) -> Vec<HealthCheck> {
    let base = api.0.base();
    let start = "start a hub with `rialto dev`, or choose another with --hub, RIALTO_HUB or `rialto context use`";
    let (client, live) = match connect(base).await {
        Ok(connected) => connected,
        Err(error) => {
            let finding = format!("cannot reach {base}: {}", root_cause(&error.without_url()));
            return vec![HealthCheck::fail("hub", finding, start)];
        }
    };
    if !live.status().is_success() {
        let finding = format!("{base} answers, but is not a Rialto hub ({})", live.status());
        return vec![HealthCheck::fail("hub", finding, start)];
    }
    let mut checks = vec![check_hub(&client, base).await, check_clock(&live, Timestamp::now())];
    if !checks.iter().any(HealthCheck::has_failed) {
        checks.extend(caller_checks(api, has_key).await);
        checks.extend(agent_checks(options, base).await);
    }
    checks
}

async fn connect(base: &str) -> Result<(Client, Response), reqwest::Error> {
    let client = Client::builder().timeout(TIMEOUT).no_proxy().build()?;
    let live = client.get(format!("{base}/livez")).send().await?;
    Ok((client, live))
}

/// Whether it accepts writes, and its version.
async fn check_hub(client: &Client, base: &str) -> HealthCheck {
    let version = fetch_version(client, base).await;
    let shown = version.as_ref().map_or(String::new(), |version| format!(", version {version}"));
    let shown = format!("{base}{shown}");
    let finding = match client.get(format!("{base}/readyz")).send().await {
        Ok(ready) if ready.status().is_success() => {
            let own = env!("CARGO_PKG_VERSION");
            if version.is_none_or(|version| version == own) {
                return HealthCheck::ok("hub", shown);
            }
            let finding = format!("{shown}; this command line has {own}");
            let next = "use the same version on both sides if requests are refused";
            return HealthCheck::warn("hub", finding, next);
        }
        Ok(_) => format!("{shown} does not accept writes"),
        Err(error) => format!("{base}/readyz: {}", root_cause(&error.without_url())),
    };
    HealthCheck::fail("hub", finding, "check the hub's log")
}

async fn fetch_version(client: &Client, base: &str) -> Option<String> {
    let answer = client.get(format!("{base}/health")).send().await.ok()?;
    let health: Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
    health.pointer("/data/version").and_then(Value::as_str).map(str::to_owned)
}

/// How far this machine's clock is from the hub's.
fn check_clock(answer: &Response, now: Timestamp) -> HealthCheck {
    let header = answer.headers().get("date").and_then(|date| date.to_str().ok());
    match header.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) {
        Some(there) => check_skew(now.duration_since(there.timestamp())),
        None => {
            let finding = "the hub does not send its time";
            HealthCheck::warn("clock", finding, "compare the clocks by hand")
        }
    }
}

fn check_skew(ahead: SignedDuration) -> HealthCheck {
    let direction = if ahead.is_negative() { "behind" } else { "ahead of" };
    let finding = format!("{} s {direction} the hub's", ahead.abs().as_secs());
    let next = "set the clock, preferably with NTP";
    match ahead.abs() {
        skew if skew <= SKEW_FINE => HealthCheck::ok("clock", "same as the hub's"),
        skew if skew <= SKEW_MAX => HealthCheck::warn("clock", finding, next),
        _ => HealthCheck::fail("clock", finding, next),
    }
}

/// The caller's key works, its inbox can be read, and there are credits to spend.
async fn caller_checks(api: &V1, has_key: bool) -> Vec<HealthCheck> {
    if !has_key {
        let next =
            "the first `rialto job post` creates one; or pass one with --key-file or RIALTO_KEY";
        return vec![HealthCheck::warn("key", "none", next)];
    }
    let me = match api.me().await {
        Ok(me) => me,
        Err(error) => {
            let is_unknown = matches!(error, CallError::Refused { status: 401, .. });
            let mut check = HealthCheck::from_error("key", error);
            if is_unknown {
                let next = "check with `rialto context show` that it is for this hub; register again if it is lost";
                check.next = Some(next.to_owned());
            }
            return vec![check];
        }
    };
    let owner = format!("of {} (number {})", escape_line(&me.agent.name), me.agent.id);
    // One page instead of a stream: a stream would make the agent count as online.
    let inbox = match api.check_inbox().await {
        Ok(()) => HealthCheck::ok("inbox", "opens"),
        Err(error) => HealthCheck::from_error("inbox", error),
    };
    vec![HealthCheck::ok("key", owner), inbox, check_credits(&me)]
}

fn check_credits(me: &CallerView) -> HealthCheck {
    let owner = escape_line(&me.account.owner);
    let available = me.account.available.get();
    if let Some(1..) = millionths(available) {
        return HealthCheck::ok("credits", format!("{available} available to {owner}"));
    }
    let next = format!("the operator grants some with `rialto operator grant {owner} 10.00`");
    HealthCheck::warn("credits", format!("{owner} has none to spend"), next)
}

/// The hub knows the agents of this machine and sees them online.
async fn agent_checks(options: &HubOptions, base: &str) -> Vec<HealthCheck> {
    let context = options.context_for(Some(base));
    let names = context.and_then(|context| context.agents().map(|names| (context, names)));
    let (context, names) = match names {
        Ok(names) => names,
        Err(error) => return vec![HealthCheck::from_error("agents", error)],
    };
    let mut checks = Vec::new();
    for name in names {
        let check = check_agent(&context, &name).await;
        checks.push(check.unwrap_or_else(|error| HealthCheck::from_error("agent", error)));
    }
    checks
}

async fn check_agent(context: &Context, name: &str) -> CliResult<HealthCheck> {
    let Some(path) = context.agent_key_path(name)?.filter(|path| path.exists()) else {
        let next = format!("`rialto agent run --name {name}` registers it");
        return Ok(HealthCheck::warn("agent", format!("{name} has no key yet"), next));
    };
    let keys = key_file::load(&path)?;
    let api = V1(Hub::new(context.hub())?.with_key(keys.key.reveal()));
    let number = match api.me().await {
        Ok(me) if me.agent.online => {
            let finding = format!("{name} is online (number {})", me.agent.id);
            return Ok(HealthCheck::ok("agent", finding));
        }
        Ok(me) => Some(me.agent.id),
        Err(CallError::Refused { status: 401, .. }) => None,
        Err(error) => return Ok(HealthCheck::from_error("agent", error)),
    };
    Ok(if let Some(number) = number {
        let finding = format!("{name} is offline (number {number})");
        HealthCheck::warn("agent", finding, "start it with `rialto agent run`")
    } else if !is_agent_unknown(&api, &keys).await? {
        let finding = format!("the hub rejects the key of {name}");
        let path = path.display();
        let next = format!("if it got a new key elsewhere, put that on the first line of {path}");
        HealthCheck::fail("agent", finding, next)
    } else if is_stopped(&api).await {
        // Stopping an agent unregisters it, and its key works again when it restarts: the file is
        // the agent's only proof of identity.
        let finding = format!("{name} is not registered at the hub: it was stopped");
        HealthCheck::warn("agent", finding, "`rialto agent run` starts it again with its key")
    } else {
        let finding = format!("{name} was registered before the hub was reset");
        HealthCheck::warn("agent", finding, "`rialto agent run` in its folder registers it here")
    })
}

/// Whether the hub knows the key as that of an agent that is unregistered.
async fn is_stopped(api: &V1) -> bool {
    let work = api.0.get("/v1/work?wait=0&limit=0").await;
    matches!(work, Err(CallError::Refused { status: 410, .. }))
}

fn check_tool(tool: &'static str, folders: &[impl AsRef<Path>]) -> HealthCheck {
    let file = format!("{tool}{}", std::env::consts::EXE_SUFFIX);
    let mut paths = folders.iter().map(|folder| folder.as_ref().join(&file));
    match paths.find(|path| path.is_file()) {
        Some(path) => HealthCheck::ok(tool, path.display().to_string()),
        None => {
            let next = format!("only handlers written for {tool} need it");
            HealthCheck::warn(tool, "not found", next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_be_off_by_little() {
        for (seconds, status) in
            [(0, "ok"), (-5, "ok"), (6, "warn"), (-30, "warn"), (31, "fail"), (-3_600, "fail")]
        {
            let check = check_skew(SignedDuration::from_secs(seconds));
            assert_eq!(check.status, status, "{seconds}");
        }
        assert!(check_skew(SignedDuration::from_secs(-60)).finding.contains("60 s behind"));
    }

    #[test]
    fn the_time_of_a_header_is_understood() {
        let there = jiff::fmt::rfc2822::parse("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        assert_eq!(there.timestamp().as_second(), 784_111_777);
    }

    #[test]
    fn a_tool_that_is_missing_is_only_a_warning() {
        let folder = tempfile::tempdir().expect("a directory");
        assert_eq!(check_tool("thing", &[folder.path()]).status, "warn");
        let file = format!("thing{}", std::env::consts::EXE_SUFFIX);
        std::fs::write(folder.path().join(file), "").expect("written");
        assert_eq!(check_tool("thing", &[folder.path()]).status, "ok");
    }
}
