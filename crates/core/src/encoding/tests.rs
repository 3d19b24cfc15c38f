//! Everything that travels arrives as it was, and nothing else is accepted.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;

use super::random_value::RandomValues;
use super::*;
use crate::alias::Protocol;

/// Encoded examples of version 2, one line each: the type, the variant and the bytes as hex.
const EXAMPLES: &str = include_str!("version_2.txt");

/// The value as it arrives.
fn travelled<T: Encodable>(value: &T) -> T {
    decode(&encode(value).expect("it can be encoded")).expect("it can be decoded")
}

fn survives<T: Encodable + PartialEq + Debug>(seed: u64) {
    let value: T = RandomValues::new(seed).value();
    assert_eq!(travelled(&value), value);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_travels_arrives_as_it_was(seed: u64) {
        survives::<Envelope>(seed);
        survives::<Command>(seed);
        survives::<Answer>(seed);
        survives::<Refusal>(seed);
        survives::<Changes>(seed);
        let batch: Batch = RandomValues::new(seed).value();
        let bytes = encode_batch(&batch, Vec::new()).expect("it can be encoded");
        prop_assert_eq!(decode_batch(&bytes).expect("it can be decoded"), batch);
    }

    #[test]
    fn a_byte_that_changes_on_the_way_never_panics(seed: u64, at: usize, byte: u8) {
        let value: Envelope = RandomValues::new(seed).value();
        let mut bytes = encode(&value).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = decode::<Envelope>(&bytes);
        let _ = decode::<Changes>(&bytes);
        let _ = decode::<Answer>(&bytes[..at]);
    }
}

/// One value of each variant of an enum, with the variant's name.
fn each_variant<T: Encodable + Debug>() -> BTreeMap<String, T> {
    let mut all = BTreeMap::new();
    for index in 0.. {
        let Some(value) = RandomValues::new(u64::from(index)).variant::<T>(index) else { break };
        let debug = format!("{value:?}");
        let name = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        all.insert(name.to_owned(), value);
    }
    all
}

#[test]
fn random_values_have_every_variant_of_every_type() {
    let mut random = RandomValues::new(1);
    for _ in 0..20_000 {
        random.value::<Envelope>();
        random.value::<Answer>();
    }
    let seen = |name: &str| random.variants.iter().filter(|one| one.starts_with(name)).count();
    assert_eq!(seen("Command::"), each_variant::<Command>().len());
    assert_eq!(seen("Answer::"), each_variant::<Answer>().len());
    assert_eq!(seen("Refusal::"), each_variant::<Refusal>().len());
    assert_eq!(seen("Proof::"), 4);
    assert_eq!((seen("WorkerReport::"), seen("JobRef::"), seen("OfferTerms::")), (4, 4, 3));
}

/// Lines for the file of examples.
fn example_lines<T: Encodable + Debug>(of: &str) -> Vec<(String, Vec<u8>)> {
    let each = each_variant::<T>().into_iter();
    each.map(|(name, value)| (format!("{of} {name}"), encode(&value).unwrap())).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits");
    (0..text.len()).step_by(2).map(digit).collect()
}

/// The bytes are read, and written again as they were.
fn is_stable<T: Encodable>(name: &str, bytes: &[u8]) {
    let value: T = decode(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let again = encode(&value).unwrap();
    assert_eq!(hex(&again), hex(bytes), "{name}: the encoding changed; raise the version");
}

/// The bytes are read. Rows in them may be written with more fields, or in another order.
fn is_readable<T: Encodable>(name: &str, bytes: &[u8]) {
    decode::<T>(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn a_batch_of_the_version_before_is_read_without_what_is_for_other_nodes() {
    let old: (Changes, ExpiredRows) = RandomValues::new(7).value();
    let bytes = postcard::to_extend(&old, vec![OLDEST_BATCH_VERSION]).unwrap();
    assert_eq!(decode_batch(&bytes), Ok(Batch::new(old.0, old.1)));
    let unknown = [BATCH_VERSION + 1, 0];
    let found = BATCH_VERSION + 1;
    assert_eq!(decode_batch(&unknown), Err(EncodingError::UnknownBatchVersion { found }));
}

#[test]
fn version_2_stays_as_it_is() {
    let known: BTreeMap<&str, Vec<u8>> = EXAMPLES
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a name and bytes"))
        .map(|(name, bytes)| (name, unhex(bytes)))
        .collect();
    for (name, bytes) in &known {
        match name.split_once(' ').expect("a type and a name") {
            ("envelope", _) => is_stable::<Envelope>(name, bytes),
            ("command", _) => is_stable::<Command>(name, bytes),
            ("refusal", _) => is_stable::<Refusal>(name, bytes),
            ("changes", "empty") => is_stable::<Changes>(name, bytes),
            ("changes", _) => is_readable::<Changes>(name, bytes),
            ("answer", _) => is_readable::<Answer>(name, bytes),
            other => panic!("an example of {other:?}"),
        }
    }
    let mut needed = example_lines::<Command>("command");
    needed.extend(example_lines::<Answer>("answer"));
    needed.extend(example_lines::<Refusal>("refusal"));
    for seed in 0..3 {
        let mut random = RandomValues::new(seed);
        needed.push((format!("envelope {seed}"), encode(&random.value::<Envelope>()).unwrap()));
        needed.push((format!("changes {seed}"), encode(&random.value::<Changes>()).unwrap()));
    }
    needed.push(("changes empty".to_owned(), encode(&Changes::default()).unwrap()));
    let missing = needed.iter().filter(|(name, _)| !known.contains_key(name.as_str()));
    let missing: Vec<String> =
        missing.map(|(name, bytes)| format!("{name} {}", hex(bytes))).collect();
    assert!(missing.is_empty(), "add to version_2.txt:\n{}", missing.join("\n"));
}

#[test]
fn only_a_whole_value_of_a_known_version_is_accepted() {
    let bytes = encode(&Refusal::Offline).unwrap();
    assert_eq!(decode(&bytes), Ok(Refusal::Offline));
    assert_eq!(decode::<Refusal>(&[]), Err(EncodingError::Empty));
    let later = [&[VERSION + 1], &bytes[1..]].concat();
    let found = VERSION + 1;
    assert_eq!(decode::<Refusal>(&later), Err(EncodingError::UnknownVersion { found }));
    let longer = [&bytes[..], &[0, 0]].concat();
    assert_eq!(decode::<Refusal>(&longer), Err(EncodingError::TrailingBytes { extra: 2 }));
    for end in 1..bytes.len() {
        assert!(matches!(decode::<Refusal>(&bytes[..end]), Err(EncodingError::Malformed(_))));
    }
    let long = vec![VERSION; ENCODED_BYTES_MAX + 1];
    assert_eq!(decode::<Changes>(&long), Err(EncodingError::TooLong));
    // A length that no input has does not make the reader allocate for it.
    let endless = [VERSION, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert!(decode::<Changes>(&endless).is_err());
}

#[test]
fn a_command_is_a_few_bytes_longer_than_its_texts() {
    let command = Command::Grant { name: "acme".to_owned(), amount: crate::money::Credits::ZERO };
    assert!(encode(&command).unwrap().len() <= 8);
    let origin = Protocol::new("registry");
    let job = crate::command::JobRef::Foreign { origin, id: "job-1".to_owned() };
    assert!(encode(&Command::Requeue { job }).unwrap().len() <= 20);
}
