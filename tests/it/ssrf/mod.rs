//! The hub never calls a forbidden address (T22 to T24), tested in a separate network namespace.
//!
//! The test starts itself again in a network namespace in which every address leads to this
//! machine, and its own server answers all name queries. The traps see every connection of the hub;
//! none can leave. Where the system does not allow such a namespace, the test prints a notice and
//! runs on loopback what it can; with `CI=true` it fails instead.

mod card_server;
mod dns;
mod fields;
mod literals;
mod namespace;
mod onslaught;
mod rebinding;
mod redirects;
mod spellings;
mod traps;
#[allow(dead_code)]
#[path = "../../../crates/engine/src/delivery/egress/tests/urls.rs"]
mod urls;

use namespace::Place;
use onslaught::Onslaught;

/// The name of this test, for starting itself again.
const NAME: &str = "ssrf::no_url_leads_the_hub_to_a_forbidden_listener";

#[test]
fn no_url_leads_the_hub_to_a_forbidden_listener() {
    match namespace::enter(NAME) {
        Place::Inside => {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(Onslaught::everywhere());
        }
        Place::Outside(said) => print!("{said}"),
        Place::Denied(why) => {
            let is_checked = std::env::var("CI").is_ok_and(|text| text == "true");
            assert!(!is_checked, "{NAME}: CI must not skip this: {why}");
            crate::kit::say_aloud(&format!(
                "{NAME}: NO NETWORK NAMESPACE ({why}). Only loopback is checked: neither other \
                 forbidden networks, nor names, nor redirects are."
            ));
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(Onslaught::on_loopback());
        }
    }
}
