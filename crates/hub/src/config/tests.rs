//! Tests of how the layers combine.

use std::path::Path;

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::*;

/// Loads from a file's text, variables and flags.
fn load(
    profile: Profile,
    text: &str,
    env: &[(&str, &str)],
    flags: &[(&str, &str)],
) -> Result<LoadedConfig, ConfigErrors> {
    let source = ConfigFile { name: "rialto.toml".to_owned(), text: text.to_owned() };
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    LoadedConfig::from_layers(profile, Some(&source), env, &flags)
}

fn config(text: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Config {
    load(Profile::Serve, text, env, flags).expect("a valid configuration").config
}

/// All settings in force, as text.
fn shown(text: &str, env: &[(&str, &str)]) -> String {
    format!("{:?}", config(text, env, &[]))
}

/// The message for a configuration that must not load.
fn complaint(text: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    load(Profile::Serve, text, env, flags).expect_err("an invalid configuration").to_string()
}

/// Value and origin of one key.
fn row(loaded: &LoadedConfig, key: &str) -> (String, String) {
    let row = loaded.settings().iter().find(|row| row.key == key).expect("a known key");
    (row.value.clone(), row.origin.clone())
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_the_defaults() {
    let file = "[http]\nlisten = \"1.1.1.1:1\"";
    let env = [("RIALTO_HTTP__LISTEN", "2.2.2.2:2")];
    let flags = [("http.listen", "3.3.3.3:3")];
    let listen = |file, env, flags| config(file, env, flags).http.listen.to_string();
    assert_eq!(listen("", &[], &[]), "127.0.0.1:7425");
    assert_eq!(listen(file, &[], &[]), "1.1.1.1:1");
    assert_eq!(listen(file, &env, &[]), "2.2.2.2:2");
    assert_eq!(listen(file, &env, &flags), "3.3.3.3:3");
}

#[test]
fn each_value_tells_where_it_came_from() {
    let file = "# ours\n[agora]\n\nwindow = \"30s\"\n[jobs]\nlease = \"5m\"";
    let env = [("RIALTO_EGRESS__PER_HOST", "4")];
    let flags = [("data.dir", "/tmp/x"), ("log.level", "debug")];
    let loaded = load(Profile::Dev, file, &env, &flags).expect("a valid configuration");
    let is = |key, value: &str, origin: &str| {
        assert_eq!(row(&loaded, key), (value.to_owned(), origin.to_owned()));
    };
    is("http.body_limit", "1048576", "default");
    is("http.public_url", "unset", "default");
    is("auth.registry", "\"open\"", "default (dev)");
    is("agora.window", "\"30s\"", "rialto.toml:4");
    is("jobs.lease", "\"5m\"", "rialto.toml:6");
    is("egress.per_host", "4", "env RIALTO_EGRESS__PER_HOST");
    is("data.dir", "\"/tmp/x\"", "flag --data");
    is("log.level", "\"debug\"", "flag --set log.level");
}

#[test]
fn dev_differs_from_serve_only_where_the_book_says_so() {
    let serve = load(Profile::Serve, "", &[], &[]).expect("valid defaults");
    let dev = load(Profile::Dev, "", &[], &[]).expect("valid defaults");
    let differing: Vec<_> = std::iter::zip(serve.settings(), dev.settings())
        .filter(|(serve, dev)| serve != dev)
        .map(|(serve, dev)| (serve.key, serve.value.as_str(), dev.value.as_str()))
        .collect();
    let book = [
        ("auth.registry", "\"key\"", "\"open\""),
        ("auth.openclaw", "\"key\"", "\"open\""),
        ("auth.a2a", "\"key\"", "\"open\""),
        ("limits.registrations_per_minute", "60", "0"),
        ("limits.registrations_per_minute_total", "600", "0"),
        ("limits.writes_per_minute", "600", "0"),
        ("limits.read_bytes_per_minute", "268435456", "0"),
        ("ledger.welcome_grant", "\"0.00\"", "\"100.00\""),
        ("egress.allow", "[]", "[\"127.0.0.0/8\", \"::1/128\"]"),
        ("egress.per_host_per_minute", "6000", "0"),
        ("relay.show_endpoints", "false", "true"),
        ("relay.accept_direct", "false", "true"),
        ("a2a.owner_proof", "true", "false"),
        ("mcp.guest", "false", "true"),
        ("mcp.per_job", "\"10.00\"", "\"0.00\""),
        ("mcp.per_day", "\"100.00\"", "\"0.00\""),
    ];
    assert_eq!(differing, book);
    let origin = |key: &&str| row(&dev, key).1;
    assert!(book.iter().map(|(key, ..)| key).all(|key| origin(key) == "default (dev)"));
}

#[test]
fn every_type_of_value_can_come_from_the_environment() {
    let loaded = load(
        Profile::Serve,
        "",
        &[
            ("RIALTO_LEDGER__WELCOME_GRANT", "100.00"),
            ("RIALTO_HTTP__BODY_LIMIT", "65536"),
            ("RIALTO_HTTP__PUBLIC_URL", "https://hub.example/"),
            ("RIALTO_HTTP__ALLOWED_HOSTS", "hub.local, hub.local:80"),
            ("RIALTO_LIMITS__INBOX_PENDING", "0"),
            ("RIALTO_EGRESS__ALLOW", "10.0.0.0/8,::1"),
            ("RIALTO_JOBS__LEASE", "250ms"),
            ("RIALTO_CLARA__PAYMENTS", "false"),
            ("RIALTO_CLARA__TOPICS", "[\"weather\"]"),
            ("RIALTO_BRIDGE__TOPICS", "forecast=weather"),
            ("RIALTO_RELAY__FAILED_STATUS", "error"),
        ],
        &[],
    );
    let loaded = loaded.expect("a valid configuration");
    let config = &loaded.config;
    assert_eq!(config.ledger.welcome_grant, Credits::from_micros(100_000_000));
    assert_eq!(config.http.body_limit.bytes(), 65_536);
    assert_eq!(config.http.public_url.as_ref().map(BaseUrl::as_str), Some("https://hub.example"));
    assert_eq!(config.http.allowed_hosts.len(), 2);
    assert_eq!(config.limits.inbox_pending.max(), None);
    assert_eq!(
        config.egress.allow.iter().map(|n| n.to_string()).next_back(),
        Some("::1/128".to_owned())
    );
    assert_eq!(config.jobs.lease.map(NonZeroDuration::millis), Some(Millis(250)));
    for (key, value) in [
        ("clara.payments", "false"),
        ("clara.topics", r#"["tweet", "discord", "telegram", "nft", "weather"]"#),
        ("bridge.topics", r#"{ "forecast" = "weather" }"#),
        ("relay.failed_status", "\"error\""),
    ] {
        assert_eq!(row(&loaded, key).0, value, "{key}");
    }
}

#[test]
fn an_empty_variable_unsets_what_the_file_has_set() {
    let file = "[jobs]\nlease = \"5m\"\n[egress]\nallow = [\"10.0.0.0/8\"]";
    let config = config(file, &[("RIALTO_JOBS__LEASE", ""), ("RIALTO_EGRESS__ALLOW", "")], &[]);
    assert_eq!(config.jobs.lease, None);
    assert_eq!(config.egress.allow, []);
}

#[test]
fn variables_without_a_double_underscore_are_none_of_our_business() {
    let names = ["RIALTO_HUB", "RIALTO_KEY", "RIALTO_OPERATOR_KEY", "RIALTO_HUB_SECRET"];
    let others =
        ["RIALTO_LOG", "RIALTO_PORT_7425_TCP", "OTHER_HTTP__LISTN", "HTTP__LISTEN", "RIALTO"];
    let env: Vec<_> = names.into_iter().chain(others).map(|name| (name, "x")).collect();
    assert_eq!(shown("", &env), shown("", &[]));
}

#[test]
fn an_unknown_key_is_an_error_with_a_suggestion_in_every_layer() {
    assert_eq!(
        complaint("[http]\nlistn = \"x\"", &[], &[]),
        "unknown key `http.listn` (rialto.toml:2); did you mean `http.listen`?"
    );
    assert_eq!(
        complaint("", &[("RIALTO_HTTP__LISTN", "x")], &[]),
        "unknown key `http.listn` (env RIALTO_HTTP__LISTN); did you mean `RIALTO_HTTP__LISTEN`?"
    );
    assert_eq!(
        complaint("", &[("RIALTO_http__listen", "x")], &[]),
        "unknown key `HTTP.LISTEN` (env RIALTO_http__listen); did you mean `RIALTO_HTTP__LISTEN`?"
    );
    assert_eq!(
        complaint("", &[], &[("http.listn", "x")]),
        "unknown key `http.listn` (flag --set http.listn); did you mean `http.listen`?"
    );
    assert_eq!(
        complaint("listen = \"127.0.0.1:1\"", &[], &[]),
        "unknown key `listen` (rialto.toml:1); did you mean `http.listen`?"
    );
    assert_eq!(
        complaint("[colour]\ntheme = 1", &[], &[]),
        "unknown key `colour.theme` (rialto.toml:2); `rialto config show` lists every key"
    );
}

#[test]
fn an_unknown_key_keeps_its_value_to_itself() {
    let message = complaint("", &[("RIALTO_AUTH__OPERATOR_KEY", "ro_secret")], &[]);
    assert!(!message.contains("ro_secret"), "{message}");
}

#[test]
fn an_empty_section_is_fine_unless_it_is_misspelt_or_none() {
    assert_eq!(shown("[http]\n[bridge]", &[]), shown("", &[]));
    assert!(complaint("[htpp]", &[], &[]).starts_with("unknown key `htpp` (rialto.toml:1)"));
    for text in ["http = 1", "[[http]]\nlisten = \"127.0.0.1:1\""] {
        let message = complaint(text, &[], &[]);
        assert!(
            message.contains("expected a section of settings, for example `[http]`"),
            "{message}"
        );
    }
}

#[test]
fn a_bad_value_names_key_layer_expectation_and_an_example_of_that_layer() {
    assert_eq!(
        complaint("[ledger]\nwelcome_grant = 100.00", &[], &[]),
        "`ledger.welcome_grant` (rialto.toml:2): `100.00` is a bare number; expected an amount of \
         credits as decimal text, for example `welcome_grant = \"100.00\"`"
    );
    assert_eq!(
        complaint("", &[("RIALTO_LEDGER__WELCOME_GRANT", "1.0000001")], &[]),
        "`ledger.welcome_grant` (env RIALTO_LEDGER__WELCOME_GRANT): `1.0000001` has more than 6 \
         decimals; expected an amount of credits as decimal text, for example \
         `RIALTO_LEDGER__WELCOME_GRANT=100.00`"
    );
    assert_eq!(
        complaint("", &[], &[("http.listen", "7425")]),
        "`http.listen` (flag --listen): `7425` is not of the form address:port; expected an address and a port, for \
         example `--listen 127.0.0.1:7425`"
    );
    assert_eq!(
        complaint("[egress]\nallow = [\"10.0.0.0/8\", \"10.0.0.0/33\"]", &[], &[]),
        "`egress.allow` (rialto.toml:2): `10.0.0.0/33` is not a network; expected a list, each item \
         a network in CIDR form, for example `allow = [\"10.1.0.0/16\"]`"
    );
    assert_eq!(
        complaint("auth.registry = \"keys\"", &[], &[]),
        "`auth.registry` (rialto.toml:1): `keys` is not one of the choices; expected one of key, open, for \
         example `registry = \"key\"`"
    );
}

#[test]
fn a_file_says_each_thing_in_its_own_type() {
    for text in [
        "http.body_limit = \"1048576\"",
        "http.body_limit = 0",
        "http.body_limit = -1",
        "http.body_limit = 1e6",
        "http.max_connections = 4294967296",
        "http.listen = 7425",
        "http.header_timeout = 10",
        "http.header_timeout = \"0s\"",
        "limits.writes_per_minute = -1",
        "ledger.welcome_grant = 100",
        "ledger.welcome_grant = \"-1\"",
        "egress.allow = \"10.0.0.0/8\"",
        "egress.allow = [10]",
        "relay.accept_direct = \"true\"",
        "relay.host = \"agora\"",
        "data.dir = \"\"",
        "bridge.topics = [\"tweet\"]",
        "[http.listen]\nport = 1",
    ] {
        assert!(complaint(text, &[], &[]).contains("; expected "), "{text}");
    }
    assert_eq!(config("http.body_limit = 0x10_00", &[], &[]).http.body_limit.bytes(), 4096);
}

#[test]
fn a_broken_value_is_reported_even_when_a_flag_hides_it() {
    let message = complaint("http.listen = \"here\"", &[], &[("http.listen", "127.0.0.1:1")]);
    assert!(message.starts_with("`http.listen` (rialto.toml:1): `here`"), "{message}");
}

#[test]
fn a_capability_cannot_have_a_topic_that_does_not_exist() {
    let map = "bridge.topics = { forecast = \"weather\" }";
    assert!(complaint(map, &[], &[]).starts_with("`bridge.topics` (rialto.toml:1): `weather`"));
    let known = load(Profile::Serve, map, &[("RIALTO_CLARA__TOPICS", "weather")], &[]);
    let known = known.expect("a known topic");
    assert_eq!(row(&known, "bridge.topics").0, r#"{ "forecast" = "weather" }"#);
}

#[test]
fn broken_toml_says_where() {
    let message = complaint("[http]\nlisten = ", &[], &[]);
    assert!(message.starts_with("rialto.toml is not valid TOML: "), "{message}");
    assert!(message.contains("line 2"), "{message}");
    let twice = complaint("[http]\nlisten = \"1.1.1.1:1\"\nlisten = \"1.1.1.1:2\"", &[], &[]);
    assert!(twice.contains("duplicate key"), "{twice}");
}

#[test]
fn a_named_file_that_is_missing_stops_everything() {
    let missing = Some(Path::new("no/such.toml"));
    let problem = LoadedConfig::load(Profile::Dev, missing, std::iter::empty(), &[]);
    let Err(ConfigErrors(problems)) = problem else { panic!("there is no such file") };
    assert!(matches!(&*problems, [ConfigError::Unreadable { path, .. }] if path == "no/such.toml"));
}

#[test]
fn the_shown_url_follows_the_real_address_unless_one_is_set() {
    let bound = "127.0.0.1:40001".parse().expect("an address");
    assert_eq!(config("", &[], &[]).http.base_url(bound), "http://127.0.0.1:40001");
    let named = config("http.public_url = \"https://hub.example/\"", &[], &[]);
    assert_eq!(named.http.base_url(bound), "https://hub.example");
}

#[test]
fn every_shown_value_reads_back_as_itself() {
    for profile in [Profile::Serve, Profile::Dev] {
        let loaded = load(profile, "", &[], &[]).expect("valid defaults");
        let set = loaded.settings().iter().filter(|row| row.value != "unset");
        let text: String = set.map(|row| format!("{} = {}\n", row.key, row.value)).collect();
        let again = load(Profile::Serve, &text, &[], &[]).expect("shown values are valid");
        assert_eq!(format!("{:?}", again.config), format!("{:?}", loaded.config));
    }
}

#[test]
fn all_mistakes_of_all_layers_are_told_at_once() {
    let file = "[http]\nlisten = \"nowhere\"\nbody_limt = 5\n[jobs]\nlease = 7";
    let env = [("RIALTO_LOG__LEVEL", "loud")];
    let flags = [("ledger.welcome_grant", "much")];
    let told = complaint(file, &env, &flags);
    for part in ["http.listen", "http.body_limt", "jobs.lease", "log.level", "ledger.welcome_grant"]
    {
        let lines = told.lines().filter(|line| line.contains(&format!("`{part}`")));
        assert_eq!(lines.count(), 1, "{part}: {told}");
    }
    assert_eq!(told.lines().count(), 5, "{told}");
    // Invalid TOML does not hide the errors of the other layers.
    let told = complaint("[http", &env, &flags);
    assert!(told.contains("not valid TOML") && told.contains("welcome_grant"), "{told}");
}

#[test]
fn a_wildcard_address_needs_a_url_that_agents_can_call() {
    for address in ["0.0.0.0:7425", "[::]:7425", "[::ffff:0.0.0.0]:7425"] {
        let told = complaint("", &[], &[("http.listen", address)]);
        let parts = ["http.listen", "http.public_url", "--public-url http://hub.example:7425"];
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        let flags = [("http.listen", address), ("http.public_url", "https://hub.example")];
        let http = config("", &[], &flags).http;
        assert_eq!(http.base_url(http.listen), "https://hub.example");
    }
    for url in ["http://0.0.0.0:7425", "http://0.0.0.0", "https://[::]:1/hub", "http://[::]"] {
        let told = complaint("", &[], &[("http.public_url", url)]);
        assert!(told.contains("http.public_url") && told.contains("wildcard"), "{url}: {told}");
    }
    // Any other address can be called.
    for address in ["127.0.0.1:0", "192.0.2.7:7425", "[::1]:1"] {
        config("", &[], &[("http.listen", address)]);
    }
}

const DATABASE: &str = "postgres://ada:s3cret@db/rialto";

#[test]
fn a_database_url_chooses_its_backend_and_its_password_is_not_shown() {
    let env = [("RIALTO_STORE__DATABASE_URL", DATABASE)];
    let loaded = load(Profile::Serve, "", &env, &[]).expect("a valid configuration");
    assert_eq!(loaded.config.store.backend, Backend::Postgres);
    let url = loaded.config.store.database_url.as_ref().map(DatabaseUrl::expose);
    assert_eq!(url, Some(DATABASE));
    let origin = "env RIALTO_STORE__DATABASE_URL".to_owned();
    let shown = "\"postgres://ada:***@db/rialto\"".to_owned();
    assert_eq!(row(&loaded, "store.database_url"), (shown, origin.clone()));
    assert_eq!(row(&loaded, "store.backend"), ("\"postgres\"".to_owned(), origin));
    assert!(!format!("{loaded:?}").contains("s3cret"));
    let flags = [("store.database_url", DATABASE)];
    let loaded = load(Profile::Serve, "", &[], &flags).expect("a valid configuration");
    assert_eq!(row(&loaded, "store.backend").1, "flag --database-url");
    // A higher layer can unset it.
    let unset = config("", &env, &[("store.database_url", "")]);
    assert_eq!((unset.store.backend, unset.store.database_url), (Backend::Sqlite, None));
}

#[test]
fn a_database_and_its_backend_belong_together() {
    let url = [("store.database_url", DATABASE)];
    let other = complaint("[store]\nbackend = \"memory\"", &[], &url);
    assert!(other.contains("`store.backend` (rialto.toml:2)"), "{other}");
    assert!(other.contains("`memory` does not use store.database_url"), "{other}");
    let lacks = complaint("[store]\nbackend = \"postgres\"", &[], &[]);
    assert!(lacks.contains("store.database_url to be set as well"), "{lacks}");
    let wrong = complaint("", &[], &[("store.database_url", "mysql://ada:s3cret@db/rialto")]);
    assert!(wrong.contains("begins with neither") && !wrong.contains("s3cret"), "{wrong}");
}

#[test]
fn other_nodes_must_be_able_to_reach_a_node() {
    let cluster = config("", &[], &[]).cluster;
    assert_eq!((cluster.listen.to_string().as_str(), cluster.advertise), ("127.0.0.1:7426", None));
    assert_eq!(cluster.lease.millis(), Millis::seconds(3));
    let anywhere = [("store.database_url", DATABASE), ("cluster.listen", "0.0.0.0:7426")];
    let wrong = complaint("", &[], &anywhere);
    assert!(wrong.contains("cluster.advertise to be set as well"), "{wrong}");
    let env = [("RIALTO_CLUSTER__ADVERTISE", "node-1.example:7426")];
    let advertised = config("", &env, &anywhere).cluster.advertise;
    assert_eq!(advertised.as_ref().map(HostPort::as_str), Some("node-1.example:7426"));
    // A hub of one node has no such address.
    config("", &[], &[("cluster.listen", "0.0.0.0:7426")]);
}
