//! `rialto serve`: runs a hub for production.

use std::net::SocketAddr;
use std::path::PathBuf;

use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{ConfigErrors, LoadedConfig, Profile};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use rialto_hub::telemetry;

use super::{Exit, output, print_error, runtime};

/// The variable for an operator key that is not created by the hub.
const OPERATOR_KEY: &str = "RIALTO_OPERATOR_KEY";
/// The variable for a hub secret that is not in the data directory.
const HUB_SECRET: &str = "RIALTO_HUB_SECRET";

#[derive(clap::Args)]
pub struct Args {
    /// Configuration file; ./rialto.toml is read if it exists
    #[arg(long)]
    config: Option<PathBuf>,
    /// Address and port to listen on
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Public URL of the hub, if it differs from that address
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Data directory
    #[arg(long)]
    data: Option<PathBuf>,
    /// PostgreSQL database that several nodes share; the data directory is then the node's own
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Other settings, as key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Use the default settings of `rialto dev`, for `rialto cluster dev`
    #[arg(long, hide = true)]
    dev_settings: bool,
    /// Stop when standard input is closed, for programs that start nodes
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

pub fn run(args: Args) -> Exit {
    let address = (args.listen, args.public_url);
    let mut flags = match settings_from_flags(address, args.data.as_ref(), &args.set) {
        Ok(flags) => flags,
        Err(exit) => return exit,
    };
    flags.extend(args.database_url.map(|url| ("store.database_url".to_owned(), url)));
    let profile = if args.dev_settings { Profile::Dev } else { Profile::Serve };
    let source = ConfigSource { profile, file: args.config, flags, scratch: None };
    run_hub(&source, args.stop_with_stdin, |hub| {
        let mut text = format!("rialto {} is listening on {}", env!("CARGO_PKG_VERSION"), hub.url);
        if let Some(key) = &hub.new_operator_key {
            text.push_str(&format!("\noperator key (shown only once): {key}"));
        }
        // The hub keeps running if standard output is closed.
        output::print_data(&text);
    })
}

/// Converts flags to settings; reports a wrong one.
pub fn settings_from_flags(
    (listen, public_url): (Option<SocketAddr>, Option<String>),
    data: Option<&PathBuf>,
    set: &[String],
) -> Result<Vec<(String, String)>, Exit> {
    let mut flags = Vec::new();
    flags.extend(listen.map(|address| ("http.listen".to_owned(), address.to_string())));
    flags.extend(public_url.map(|url| ("http.public_url".to_owned(), url)));
    flags.extend(data.map(|dir| ("data.dir".to_owned(), dir.display().to_string())));
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            print_error(format!(
                "--set takes key=value, like --set limits.writes_per_minute=0, not {pair}"
            ));
            return Err(Exit::Usage);
        };
        flags.push((key.to_owned(), value.to_owned()));
    }
    Ok(flags)
}

/// Sources of a hub's configuration, at the start and at each reload.
pub struct ConfigSource {
    pub profile: Profile,
    pub file: Option<PathBuf>,
    pub flags: Vec<(String, String)>,
    /// A temporary data directory that overrides the setting.
    pub scratch: Option<PathBuf>,
}

impl ConfigSource {
    fn read(&self) -> Result<LoadedConfig, ConfigErrors> {
        let flags: Vec<(&str, String)> =
            self.flags.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        let mut loaded =
            LoadedConfig::load(self.profile, self.file.as_deref(), std::env::vars(), &flags)?;
        if let Some(scratch) = &self.scratch {
            loaded.config.data.dir.clone_from(scratch);
        }
        Ok(loaded)
    }

    /// Loads the configuration and starts logging; reports problems.
    fn load(&self) -> Result<LoadedConfig, Exit> {
        let usage = |problem: &dyn std::fmt::Display| {
            print_error(problem);
            Exit::Usage
        };
        let loaded = self.read().map_err(|problems| usage(&problems))?;
        let filter = std::env::var(telemetry::FILTER_VARIABLE).ok();
        telemetry::start_logging(&loaded.config.log, filter.as_deref())
            .map_err(|bad| usage(&bad))?;
        Ok(loaded)
    }
}

/// The settings that are not defaults, with their origins.
fn describe_settings(loaded: &LoadedConfig) -> String {
    let rows = loaded.settings().iter().filter(|row| !row.origin.starts_with("default"));
    rows.map(|row| format!("{} ({})", row.key, row.origin)).collect::<Vec<_>>().join(", ")
}

/// Reloads the configuration at each SIGHUP. Settings that can change without a restart take
/// effect; an invalid configuration changes nothing. The signal never ends the hub.
#[cfg(unix)]
async fn reload_on_hangup(
    mut hangup: tokio::signal::unix::Signal,
    source: &ConfigSource,
    mut loaded: LoadedConfig,
    reload: rialto_hub::app::ReloadHandle,
) -> std::convert::Infallible {
    while hangup.recv().await.is_some() {
        match source.read() {
            Ok(new) => {
                let (taken, needs_restart) = reload.apply(&loaded, &new);
                telemetry::set_log_level(new.config.log.level);
                let (taken, needs_restart) = (taken.join(", "), needs_restart.join(", "));
                tracing::info!(taken, needs_restart, "configuration reloaded");
                loaded = new;
            }
            Err(problems) => {
                tracing::error!(%problems, "configuration not reloaded: it has errors");
            }
        }
    }
    // No further signal will arrive; the hub keeps running.
    std::future::pending().await
}

/// Runs a hub until it is stopped, perhaps by the end of standard input; `greet` is called once it is
/// ready.
pub fn run_hub(source: &ConfigSource, stop_with_stdin: bool, greet: impl FnOnce(&Hub)) -> Exit {
    let loaded = match source.load() {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    tracing::info!(settings = describe_settings(&loaded), "configuration loaded");
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(error),
    };
    let options = Options {
        operator_key: std::env::var(OPERATOR_KEY).ok(),
        hub_secret: std::env::var(HUB_SECRET).ok(),
        ..Options::default()
    };
    let ended = runtime.block_on(async {
        let (trigger, shutdown) =
            Shutdown::on_signals_or_trigger().map_err(|error| error.to_string())?;
        if stop_with_stdin {
            trigger_at_end_of_stdin(trigger);
        }
        // Installed first: until then the signal would end the process.
        #[cfg(unix)]
        let hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
            .map_err(|error| error.to_string())?;
        let hub = Hub::start(&loaded.config, options, shutdown.clone()).await;
        let hub = hub.map_err(|error| error.to_string())?;
        greet(&hub);
        #[cfg(unix)]
        {
            let reload = hub.reload_handle();
            let again = reload_on_hangup(hangup, source, loaded, reload);
            tokio::select! {
                ended = hub.run(&shutdown) => ended,
                never = again => match never {},
            }
        }
        #[cfg(not(unix))]
        hub.run(&shutdown).await
    });
    // Remaining streams and deliveries need not be waited for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => Exit::Ok,
        Err(error) => print_error(error),
    }
}

/// On a thread of its own, which the process does not wait for when it ends.
fn trigger_at_end_of_stdin(trigger: ShutdownTrigger) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        trigger.trigger();
    });
}
