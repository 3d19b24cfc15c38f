//! Texts that must not leak, and the search for them.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Every unique text that was sent or issued.
#[derive(Clone, Debug, Default)]
pub struct Canaries {
    /// Keys, tokens and webhook secrets, each with a label.
    pub secrets: Vec<(String, String)>,
    /// Contents that parties sent to each other.
    pub payloads: Vec<String>,
    next: usize,
}

/// A text to search for, and its label.
pub type Form = (String, Vec<u8>);

impl Canaries {
    /// Creates a unique text for a party to send.
    pub fn payload(&mut self, what: &str) -> String {
        self.next += 1;
        let text =
            format!("CANARY-{what}-{:08x}-{}", 0x9e37_79b9_u64 * self.next as u64, self.next);
        self.payloads.push(text.clone());
        text
    }

    /// Creates a secret for a party to send.
    pub fn issue(&mut self, what: &str) -> String {
        self.next += 1;
        let text =
            format!("SECRET-{:016x}-{}", 0x9e37_79b9_7f4a_7c15_u64 ^ self.next as u64, self.next);
        self.secret(what, &text)
    }

    /// Records a secret that the hub issued.
    pub fn secret(&mut self, what: &str, text: &str) -> String {
        self.secrets.push((what.to_owned(), text.to_owned()));
        text.to_owned()
    }

    /// Secrets verbatim, without prefix, as bytes, and encoded once more.
    pub fn secret_forms(&self) -> Vec<Form> {
        self.secrets.iter().flat_map(|(what, text)| forms(what, text)).collect()
    }

    /// Secrets in all their forms, and payloads.
    pub fn everything(&self) -> Wanted {
        let payload = |text: &String| (text.clone(), text.clone().into_bytes());
        let mut all = self.secret_forms();
        all.extend(self.payloads.iter().map(payload));
        Wanted::all(all)
    }

    /// Checks that there are enough texts for the search to be meaningful.
    pub fn assert_plausible(&self) {
        assert!(self.secrets.len() >= 12, "{:?}", self.secrets);
        assert!(self.payloads.len() >= 12, "{:?}", self.payloads);
        assert!(self.secrets.iter().all(|(_, text)| text.len() >= 20), "{:?}", self.secrets);
    }
}

fn forms(what: &str, text: &str) -> Vec<Form> {
    let form = |how: &str, bytes: Vec<u8>| (format!("{what} {how}"), bytes);
    let prefix = ["ca_", "rk_", "ro_", "whsec_"].into_iter().find(|one| text.starts_with(one));
    let bare = &text[prefix.map_or(0, str::len)..];
    let hexed: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![
        form("as it is", text.into()),
        form("without its prefix", bare.into()),
        form("in hex", hexed.clone().into_bytes()),
        form("in capital hex", hexed.to_uppercase().into_bytes()),
    ];
    // base64 depends on the offset, and its first and last characters on the neighbouring bytes.
    for offset in 0..3 {
        let shifted = [&b"???"[..offset], text.as_bytes()].concat();
        let encoded = STANDARD.encode(shifted);
        let inner = &encoded.as_bytes()[if offset == 0 { 0 } else { 4 }..encoded.len() - 4];
        all.push(form("in base64", inner.to_vec()));
    }
    // A key is hex digits with a checksum, a webhook secret is base64.
    let digits = bare.get(..40).and_then(unhexed);
    all.extend(digits.map(|bytes| form("as random bytes", bytes)));
    let secret = text.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    all.extend(secret.map(|bytes| form("as secret bytes", bytes)));
    all
}

fn unhexed(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

pub fn holds(bytes: &[u8], text: &str) -> bool {
    let form = (String::new(), text.as_bytes().to_vec());
    Wanted::all(vec![form]).found(bytes).is_some()
}

/// Texts to search for, indexed by their first bytes, so that one pass finds them all.
pub struct Wanted(HashMap<[u8; BEGINNING], Vec<Form>>);

/// Minimum length of every form.
const BEGINNING: usize = 8;

impl Wanted {
    pub fn all(forms: Vec<Form>) -> Self {
        let mut by_beginning: HashMap<_, Vec<Form>> = HashMap::new();
        for form in forms {
            let beginning = *form.1.first_chunk().expect("no form is that short");
            by_beginning.entry(beginning).or_default().push(form);
        }
        Self(by_beginning)
    }

    fn found(&self, bytes: &[u8]) -> Option<&Form> {
        (0..bytes.len()).find_map(|at| {
            let rest = &bytes[at..];
            let forms = self.0.get(rest.first_chunk::<BEGINNING>()?)?;
            forms.iter().find(|(_, wanted)| rest.starts_with(wanted))
        })
    }

    /// Checks that none of these occurs.
    #[track_caller]
    pub fn assert_not_in(&self, place: &str, bytes: &[u8]) {
        if let Some((what, wanted)) = self.found(bytes) {
            panic!("{place}: found {what}: {}", near(bytes, wanted));
        }
    }
}

/// The surrounding bytes.
fn near(bytes: &[u8], wanted: &[u8]) -> String {
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap_or_default();
    let end = (at + wanted.len() + 200).min(bytes.len());
    String::from_utf8_lossy(&bytes[at.saturating_sub(600)..end]).into_owned()
}

#[test]
fn a_secret_is_found_in_every_form_it_could_take() {
    let mut canaries = Canaries::default();
    let key = format!("rk_{}", "0123456789abcdef".repeat(3));
    canaries.secret("a key", &key);
    let secret = canaries.secret("a secret", &format!("whsec_{}", STANDARD.encode([0xa7; 32])));
    let wanted = Wanted::all(canaries.secret_forms());
    let found = |bytes: &[u8]| wanted.found(bytes).is_some();
    assert!(!found(b"nothing of the kind"));
    assert!(found(format!("x{key}y").as_bytes()));
    assert!(found(&[&[1, 2], &unhexed(&key[3..43]).expect("digits")[..]].concat()));
    assert!(found(&[0xa7; 32]));
    for before in ["", "a", "ab", "abc", "abcd"] {
        for text in [&key, &secret] {
            let encoded = STANDARD.encode(format!("{before}{text} and more"));
            assert!(found(encoded.as_bytes()), "{before}{text}");
        }
    }
}
