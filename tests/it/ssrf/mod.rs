//! The hub calls nobody it must not (T22 to T24), shown in a network of its own.
//!
//! The test starts itself again in a network namespace in which every address there is leads to this
//! machine, and where our own server answers all questions about names. Whatever the hub dials, a trap
//! sees; nothing can leave. Where the system allows no such namespace, that is said aloud, and what can
//! be shown on loopback is shown there; but not where `CI=true`, where nobody hears it.

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

/// The name this test goes by when it starts itself again.
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
            assert!(!is_checked, "{NAME}: where everything is checked, this must be: {why}");
            crate::kit::say_aloud(&format!(
                "{NAME}: NO NETWORK NAMESPACE ({why}). Only loopback is checked: neither other \
                 forbidden networks, nor names, nor redirects are."
            ));
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(Onslaught::on_loopback());
        }
    }
}
