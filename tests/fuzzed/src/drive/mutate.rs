//! Mutations of inputs.

use super::dice::Dice;

/// The longest input.
const BYTES_MAX: usize = 64 << 10;
/// The usual maximum: a parser should not spend its time on padding.
const BYTES_USUAL: usize = 4 << 10;
/// Numbers at the limits of number types.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "00",
    "0.1",
    "1e1",
    "1E+2",
    "1e-7",
    "1e400",
    "1e-400",
    "0.000001",
    "100",
    "0.0000001",
    "255",
    "256",
    "65535",
    "65536",
    "1000000000",
    "1000000000.000001",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "-9007199254740993",
    "1e21",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "253402300799999",
];
/// Characters that are often special cases: line ends, signs, wide ones, invisible ones.
const CHARACTERS: &[&str] = &[
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\ud83d\\ude00",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    ".",
    "-",
    "+",
    "%",
    "%00",
    "%ff",
    "&",
    "=",
    "/",
    "@",
    "~",
    "e",
    "\u{7f}",
    "\u{80}",
    "é",
    "e\u{301}",
    "\u{200d}",
    "\u{202e}",
    "\u{feff}",
    "\u{ffff}",
    "ß",
    "İ",
    "ſ",
    "K",
    "а",
    "。",
    "😀",
    "\u{10ffff}",
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
];

/// Makes inputs out of others.
pub struct Mutator<'w> {
    words: &'w [&'w str],
}

impl<'w> Mutator<'w> {
    /// A mutator that knows these words of its parser.
    pub fn new(words: &'w [&'w str]) -> Self {
        Self { words }
    }

    /// A mutation of `input`, sometimes with parts of `other`.
    pub fn made(&self, dice: &mut Dice, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut made = input.to_vec();
        for _ in 0..=dice.below(6) {
            self.once(dice, &mut made, other);
        }
        let most = if dice.below(64) == 0 { BYTES_MAX } else { BYTES_USUAL.max(input.len()) };
        made.truncate(most);
        made
    }

    fn once(&self, dice: &mut Dice, made: &mut Vec<u8>, other: &[u8]) {
        match dice.below(16) {
            0 | 1 => flip(dice, made),
            2 => set(dice, made),
            3 | 4 => drop(made.drain(dice.part(made.len(), made.len()))),
            5 => made.truncate(dice.below(made.len() + 1)),
            6 => again(dice, made),
            7 => splice(dice, made, other),
            8 => put(dice, made, other),
            9 | 10 => number(dice, made),
            11 => word(dice, made, CHARACTERS),
            12 => case(dice, made),
            13 => swap(dice, made),
            _ => word(dice, made, self.words),
        }
    }
}

fn flip(dice: &mut Dice, made: &mut [u8]) {
    let (at, bit) = (dice.below(made.len()), dice.below(8));
    if let Some(byte) = made.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn set(dice: &mut Dice, made: &mut [u8]) {
    let (at, to) = (dice.below(made.len()), dice.any() as u8);
    if let Some(byte) = made.get_mut(at) {
        *byte = to;
    }
}

/// Repeats a part many times, like depth and padding bombs.
fn again(dice: &mut Dice, made: &mut Vec<u8>) {
    let range = dice.part(made.len(), made.len());
    let (part, at) = (made[range.clone()].to_vec(), range.end);
    let times = match dice.below(8) {
        0 => dice.below(5_000),
        1 | 2 => dice.below(100),
        _ => 1,
    };
    let room = BYTES_MAX.saturating_sub(made.len());
    let repeated: Vec<u8> =
        part.iter().copied().cycle().take((part.len() * times).min(room)).collect();
    made.splice(at..at, repeated);
}

/// The beginning of one input with the end of another.
fn splice(dice: &mut Dice, made: &mut Vec<u8>, other: &[u8]) {
    made.truncate(dice.below(made.len() + 1));
    made.extend_from_slice(&other[dice.below(other.len() + 1)..]);
}

/// Replaces a part with a part of another input.
fn put(dice: &mut Dice, made: &mut Vec<u8>, other: &[u8]) {
    let part = other[dice.part(other.len(), other.len())].to_vec();
    made.splice(dice.part(made.len(), made.len()), part);
}

/// Replaces a number with another one.
fn number(dice: &mut Dice, made: &mut Vec<u8>) {
    let from = dice.below(made.len());
    let Some(start) = made[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
        return;
    };
    let end =
        made[start..].iter().position(|b| !b.is_ascii_digit()).map_or(made.len(), |n| start + n);
    let to = dice.one(NUMBERS).copied().unwrap_or_default();
    made.splice(start..end, to.bytes());
}

/// Inserts a word, or replaces a part with it.
fn word(dice: &mut Dice, made: &mut Vec<u8>, words: &[&str]) {
    let Some(word) = dice.one(words).copied() else { return };
    let place = match dice.below(2) {
        0 => dice.part(made.len(), 32),
        _ => {
            let at = dice.below(made.len() + 1);
            at..at
        }
    };
    made.splice(place, word.bytes());
}

fn case(dice: &mut Dice, made: &mut [u8]) {
    let range = dice.part(made.len(), 64);
    for byte in &mut made[range] {
        if byte.is_ascii_alphabetic() {
            *byte ^= 0x20;
        }
    }
}

fn swap(dice: &mut Dice, made: &mut [u8]) {
    let (one, other) = (dice.below(made.len()), dice.below(made.len()));
    if !made.is_empty() {
        made.swap(one, other);
    }
}
