//! Resources for a crowd in this process: file handles, and one crowd at a time.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{Mutex, MutexGuard};

/// Handles reserved for everything but a crowd's connections.
const SPARE: usize = 300;
/// Environment variable: multiplies the size of crowds.
const MORE: &str = "RIALTO_TEST_CROWD";
/// Environment variable: allows smaller crowds where the system gives too few handles.
const FEW: &str = "RIALTO_TEST_FEW";

/// One crowd at a time, so that their connections do not add up.
static CROWD: Mutex<()> = Mutex::const_new(());

/// Capacity for this many connections, while it is held.
pub struct Room {
    pub count: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Room {
    /// Waits until no other crowd runs.
    pub async fn of(wanted: usize) -> Self {
        let alone = CROWD.lock().await;
        let more = std::env::var(MORE).ok().and_then(|text| text.parse().ok());
        let wanted = wanted * more.unwrap_or(1_usize);
        let room = handles().saturating_sub(SPARE);
        if room < wanted {
            let lack = format!(
                "room for only {room} of {wanted} connections: raise the limit with \
                 `ulimit -Hn {}`, or set {FEW}=1 to go on with fewer",
                wanted + SPARE
            );
            assert!(std::env::var(FEW).is_ok_and(|few| few == "1"), "{lack}");
            crate::kit::say_aloud(&lack);
        }
        Self { count: room.min(wanted), _alone: alone }
    }
}

/// The limit of open files, after raising it as far as possible.
fn handles() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .expect("up to the hard limit");
    maximum.map_or(usize::MAX, |most| most as usize)
}
