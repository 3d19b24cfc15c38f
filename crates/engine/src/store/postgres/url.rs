//! Database URLs: those of libpq, with parameters of our own.
//!
//! `schema` names the PostgreSQL schema of the hub, so that several hubs can share one database.
//! `sslrootcert` names a file with certificates to trust instead of those of the system. `sslmode`
//! is `disable`, `prefer`, `require`, `verify-ca` or `verify-full`. With `prefer`, the default, the
//! connection is encrypted if the server can, and its certificate is not checked; with the last
//! three it is always encrypted, and the certificate and the name in it are checked.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls;
use crate::store::StoreError;

/// The schema of a hub whose URL names none.
const DEFAULT_SCHEMA: &str = "rialto";
/// PostgreSQL cuts longer names.
const SCHEMA_BYTES_MAX: usize = 63;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A peer that is gone is noticed after about five seconds; the system's default is two hours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(2);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_RETRIES: u32 = 3;
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// How to connect to the database of a hub.
#[derive(Clone)]
pub struct Database {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    /// A plain lower-case name, so that it needs no quotes.
    pub schema: String,
}

impl Database {
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(invalid("it begins with postgresql://"));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut root, mut mode) = (DEFAULT_SCHEMA.to_owned(), None, None);
        let (mut others, mut names) = (Vec::new(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let mut decoded = url::form_urlencoded::parse(pair.as_bytes());
            let (name, value) = decoded.next().unwrap_or_default();
            match &*name {
                "schema" => schema = value.into_owned(),
                "sslrootcert" => root = Some(PathBuf::from(value.into_owned())),
                "sslmode" => mode = Some(value.into_owned()),
                _ => {
                    others.push(pair);
                    names.push(name.into_owned());
                }
            }
        }
        if !is_schema_name(&schema) {
            return Err(invalid(
                "a schema is named by lower-case letters, digits and underscores, at most 63",
            ));
        }
        let rest = format!("{address}?{}", others.join("&"));
        let mut config: Config = rest.parse().map_err(|error| invalid(&chain(&error)))?;
        let verified = match mode.as_deref() {
            None | Some("prefer") => {
                config.ssl_mode(SslMode::Prefer);
                root.is_some()
            }
            Some("disable") => {
                config.ssl_mode(SslMode::Disable);
                false
            }
            Some("require" | "verify-ca" | "verify-full") => {
                config.ssl_mode(SslMode::Require);
                true
            }
            Some(_) => {
                return Err(invalid(
                    "sslmode is disable, prefer, require, verify-ca or verify-full",
                ));
            }
        };
        let tls = match verified {
            true => tls::verifying(root.as_deref())?,
            false => tls::encrypting(),
        };
        let has = |name: &str| names.iter().any(|one| one == name);
        if !has("connect_timeout") {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if !has("keepalives_idle") {
            config.keepalives_idle(KEEPALIVE_IDLE);
        }
        if !has("keepalives_interval") {
            config.keepalives_interval(KEEPALIVE_INTERVAL);
        }
        if !has("keepalives_retries") {
            config.keepalives_retries(KEEPALIVE_RETRIES);
        }
        if !has("tcp_user_timeout") {
            config.tcp_user_timeout(UNACKNOWLEDGED_MAX);
        }
        if !has("application_name") {
            config.application_name("rialto");
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self { config, tls, schema })
    }
}

fn is_schema_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    starts && name.len() <= SCHEMA_BYTES_MAX && name.bytes().all(is_allowed)
}

fn invalid(why: &str) -> StoreError {
    StoreError::Failed(format!("the database URL is not valid: {why}"))
}

/// An error with its causes. None of them contains the password.
pub fn chain(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(url: &str) -> String {
        match Database::parse(url) {
            Ok(_) => panic!("{url} is not valid"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn our_own_parameters_are_taken_out() {
        let url = "postgresql://ada:p%3Fw@one:5432,two:5433/hub?schema=second&sslmode=disable\
                   &keepalives_idle=9&application_name=ours";
        let database = Database::parse(url).unwrap();
        assert_eq!(database.schema, "second");
        assert_eq!(database.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(database.config.get_ports(), [5432, 5433]);
        assert_eq!(database.config.get_dbname(), Some("hub"));
        assert_eq!(database.config.get_keepalives_idle(), Duration::from_secs(9));
        assert_eq!(database.config.get_application_name(), Some("ours"));
        assert_eq!(database.config.get_connect_timeout(), Some(&CONNECT_TIMEOUT));
        let plain = Database::parse("postgres://localhost/hub").unwrap();
        assert_eq!((&*plain.schema, plain.config.get_ssl_mode()), ("rialto", SslMode::Prefer));
        assert_eq!(plain.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(plain.config.get_application_name(), Some("rialto"));
    }

    #[test]
    fn a_schema_is_a_plain_name() {
        for name in ["a", "_", "hub_2", &"x".repeat(63)] {
            assert!(Database::parse(&format!("postgresql:///hub?schema={name}")).is_ok(), "{name}");
        }
        for name in ["", "Hub", "2nd", "a-b", "a;b", "a%20b", "a\"b", &"x".repeat(64)] {
            let found = problem(&format!("postgresql:///hub?schema={name}"));
            assert!(found.contains("schema"), "{found}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_named_without_its_password() {
        assert!(problem("mysql://localhost/hub").contains("postgresql://"));
        assert!(problem("postgresql:///hub?sslmode=always").contains("verify-full"));
        assert!(problem("postgresql:///hub?nonsense=1").contains("nonsense"));
        let root = problem("postgresql:///hub?sslmode=require&sslrootcert=/nowhere/root.pem");
        assert!(root.contains("sslrootcert"), "{root}");
        assert!(!problem("postgresql://ada:secret@host:port/hub").contains("secret"));
    }
}
