//! How the hub knows that the user agreed to a transfer: codes that the user is asked about, and
//! request states of questions that the client asks.
//!
//! Both are made from the hub's secret and say what they are for, so no node has to remember them. That
//! each is used once follows from the id of its transfer, which is the same for every use.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rialto_core::alias::Digest;
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_engine::secret::HubSecret;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const CODE_SALT: &str = "rialto mcp confirm code v1";
const STATE_SALT: &str = "rialto mcp request state v1";
/// How long a code or a state is good.
const GOOD_FOR_SECONDS: i64 = 600;
/// For how long after that a code is told apart from a wrong one.
const KNOWN_FOR_SECONDS: i64 = 3_600;
/// How far the clocks of two nodes may differ.
const CLOCK_SKEW_SECONDS: i64 = 5;
/// Hex digits of a code: those of its number, and those that prove it.
const NUMBER_DIGITS: usize = 4;
const PROOF_DIGITS: usize = 8;

/// What the user agrees to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOrder {
    pub by: AgentId,
    pub to: OwnerId,
    /// The receiver as it is shown.
    pub receiver: String,
    pub amount: Credits,
}

/// The proof that a user agreed, and the id of the one transfer that follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub transfer: Uuid,
}

/// Why a code is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    Wrong,
    Expired,
}

impl TransferOrder {
    /// What codes and states are bound to.
    fn parts(&self) -> [[u8; 8]; 3] {
        [self.by.0.to_be_bytes(), self.to.0.to_be_bytes(), self.amount.micros().to_be_bytes()]
    }

    fn digest(&self) -> String {
        let [by, to, amount] = self.parts();
        let Digest(bytes) =
            Digest::of(&[b"send_credits", &by, &to, &amount, self.receiver.as_bytes()]);
        hex(&bytes)
    }

    /// A key for the codes of this order alone.
    fn code_key(&self, secret: &HubSecret) -> [u8; 32] {
        secret.derive(CODE_SALT, &self.digest())
    }

    /// A new code; `number` is random.
    pub fn new_code(&self, secret: &HubSecret, now: Timestamp, number: u16) -> String {
        let proof = prove(&self.code_key(secret), seconds(now), number);
        format!("{number:04x}{}", &hex(&proof.0)[..PROOF_DIGITS])
    }

    /// Reads a code that was given for this order.
    pub fn check_code(
        &self,
        secret: &HubSecret,
        code: &str,
        now: Timestamp,
    ) -> Result<Agreement, CodeError> {
        let code = code.trim().to_ascii_lowercase();
        let is_hex = code.len() == NUMBER_DIGITS + PROOF_DIGITS
            && code.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex {
            return Err(CodeError::Wrong);
        }
        let (number, proof) = code.split_at(NUMBER_DIGITS);
        let number = u16::from_str_radix(number, 16).map_err(|_| CodeError::Wrong)?;
        let (key, now) = (self.code_key(secret), seconds(now));
        // The second in which it was made does not stand in it.
        let made = (now - KNOWN_FOR_SECONDS..=now + CLOCK_SKEW_SECONDS).rev().find(|at| {
            let Digest(expected) = prove(&key, *at, number);
            is_equal(&hex(&expected).as_bytes()[..PROOF_DIGITS], proof.as_bytes())
        });
        match made {
            None => Err(CodeError::Wrong),
            Some(at) if now - at > GOOD_FOR_SECONDS => Err(CodeError::Expired),
            Some(at) => {
                let use_of = format!("code {} {at} {code}", self.digest());
                Ok(Agreement { transfer: transfer_id(secret, &use_of) })
            }
        }
    }

    /// A new state of a question about this order; `id` is random.
    pub fn new_state(&self, secret: &HubSecret, now: Timestamp, id: Uuid) -> String {
        let until = seconds(now) + GOOD_FOR_SECONDS;
        let payload = StatePayload { id, until, what: self.digest() };
        let payload = serde_json::to_vec(&payload).unwrap_or_default();
        let payload = URL_SAFE_NO_PAD.encode(payload);
        let proof = hex(&secret.derive(STATE_SALT, &payload));
        format!("{payload}.{proof}")
    }

    /// Reads a state that was given for this order.
    pub fn check_state(
        &self,
        secret: &HubSecret,
        state: &str,
        now: Timestamp,
    ) -> Result<Agreement, StateError> {
        let (payload, proof) = state.split_once('.').ok_or(StateError::Forged)?;
        let expected = hex(&secret.derive(STATE_SALT, payload));
        if !is_equal(expected.as_bytes(), proof.as_bytes()) {
            return Err(StateError::Forged);
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| StateError::Forged)?;
        let payload: StatePayload =
            serde_json::from_slice(&payload).map_err(|_| StateError::Forged)?;
        if payload.what != self.digest() {
            return Err(StateError::OtherCall);
        }
        if seconds(now) > payload.until {
            return Err(StateError::Expired);
        }
        Ok(Agreement { transfer: transfer_id(secret, &format!("state {}", payload.id)) })
    }
}

/// What a state says. Only the hub can write one.
#[derive(Serialize, Deserialize)]
struct StatePayload {
    id: Uuid,
    /// In seconds since 1970.
    until: i64,
    /// The digest of agent, tool and arguments.
    what: String,
}

/// Why a request state is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("requestState was not made by this hub")]
    Forged,
    #[error("requestState belongs to another agent, or to other arguments")]
    OtherCall,
    #[error("requestState is older than 10 minutes")]
    Expired,
    #[error("requestState was used already")]
    Spent,
}

fn prove(key: &[u8; 32], at: i64, number: u16) -> Digest {
    Digest::of(&[key, &at.to_be_bytes(), &number.to_be_bytes()])
}

/// An id that nobody else can name before the transfer is made.
fn transfer_id(secret: &HubSecret, use_of: &str) -> Uuid {
    let key = secret.derive("rialto mcp transfer id v1", use_of);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&key[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

fn seconds(at: Timestamp) -> i64 {
    at.0.div_euclid(1_000)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes the same time wherever the texts differ.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_000_500);

    fn secret() -> HubSecret {
        HubSecret::from_bytes([7; 32])
    }

    fn order() -> TransferOrder {
        let amount = Credits::from_micros(250_000);
        TransferOrder { by: AgentId(3), to: OwnerId(4), receiver: "bob".to_owned(), amount }
    }

    fn after(seconds: i64) -> Timestamp {
        Timestamp(NOW.0 + seconds * 1_000)
    }

    /// Orders that differ in one thing each.
    fn others() -> [TransferOrder; 4] {
        let other = order();
        [
            TransferOrder { by: AgentId(5), ..other.clone() },
            TransferOrder { to: OwnerId(5), ..other.clone() },
            TransferOrder { receiver: "eve".to_owned(), ..other.clone() },
            TransferOrder { amount: Credits::from_micros(250_001), ..other },
        ]
    }

    #[test]
    fn a_code_is_good_for_ten_minutes_and_for_one_order() {
        let code = order().new_code(&secret(), NOW, 0xbfe8);
        assert_eq!(code.len(), 12);
        assert!(code.starts_with("bfe8") && code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let check = |code: &str, at| order().check_code(&secret(), code, at);
        let first = check(&code, NOW).expect("it is good");
        assert_eq!(check(&code, after(600)), Ok(first), "every use has one transfer");
        assert_eq!(check(&format!(" {} ", code.to_uppercase()), after(1)), Ok(first));
        assert_eq!(check(&code, after(601)), Err(CodeError::Expired));
        assert_eq!(check(&code, after(3_599)), Err(CodeError::Expired));
        assert_eq!(check(&code, after(7_200)), Err(CodeError::Wrong));
        for wrong in ["", "bfe8", "000000000000", "nothexatall!", &format!("{code}0")] {
            assert_eq!(check(wrong, NOW), Err(CodeError::Wrong), "{wrong}");
        }
        for other in others() {
            assert_eq!(other.check_code(&secret(), &code, NOW), Err(CodeError::Wrong), "{other:?}");
        }
        let elsewhere = HubSecret::from_bytes([8; 32]);
        assert_eq!(order().check_code(&elsewhere, &code, NOW), Err(CodeError::Wrong));
    }

    #[test]
    fn two_codes_are_two_transfers() {
        let transfer = |number| {
            let code = order().new_code(&secret(), NOW, number);
            order().check_code(&secret(), &code, NOW).expect("it is good").transfer
        };
        assert_ne!(transfer(1), transfer(2));
    }

    #[test]
    fn a_state_is_bound_to_agent_and_arguments_and_cannot_be_written_by_others() {
        let state = order().new_state(&secret(), NOW, Uuid::from_u128(9));
        let check = |state: &str, at| order().check_state(&secret(), state, at);
        let first = check(&state, NOW).expect("it is good");
        assert_eq!(check(&state, after(600)), Ok(first));
        assert_eq!(check(&state, after(601)), Err(StateError::Expired));
        for other in others() {
            let read = other.check_state(&secret(), &state, NOW);
            assert_eq!(read, Err(StateError::OtherCall), "{other:?}");
        }
        let (payload, proof) = state.split_once('.').expect("two parts");
        let later = URL_SAFE_NO_PAD.decode(payload).expect("base64");
        let later = String::from_utf8(later).expect("text").replace("17900006", "27900006");
        let later = format!("{}.{proof}", URL_SAFE_NO_PAD.encode(later));
        for forged in ["", ".", "x.y", payload, &later, &state[1..], &state[..state.len() - 1]] {
            assert_eq!(check(forged, NOW), Err(StateError::Forged), "{forged}");
        }
        let elsewhere = HubSecret::from_bytes([8; 32]);
        assert_eq!(order().check_state(&elsewhere, &state, NOW), Err(StateError::Forged));
    }
}
