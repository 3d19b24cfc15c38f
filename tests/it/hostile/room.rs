//! Room for a crowd in this process: file handles, and nobody else's crowd.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{Mutex, MutexGuard};

/// Handles this process keeps for everything that is not a connection of a crowd.
const SPARE: usize = 300;
/// Multiplies what is wanted.
const MORE: &str = "RIALTO_TEST_CROWD";
/// Set it where the system gives too few handles and fewer connections are better than none.
const FEW: &str = "RIALTO_TEST_FEW";

/// One crowd at a time, so that their connections do not add up.
static CROWD: Mutex<()> = Mutex::const_new(());

/// Room for so many connections, while it is held.
pub struct Room {
    pub count: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Room {
    /// Waits until no other crowd is there.
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

/// How many files this process may have open, once it has asked for all it can get.
fn handles() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .expect("up to the hard limit");
    maximum.map_or(usize::MAX, |most| most as usize)
}
