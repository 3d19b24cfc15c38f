//! Names in place of what is another every time: ids, keys, signatures, times.

/// What is called what, the longest first.
pub struct Mask {
    known: Vec<(String, String)>,
}

/// Members whose number is how long something took, or may take.
const SPANS: [&str; 3] = ["\"execution_time_ms\":", "\"execution_duration_ms\":", "\"timeout\":"];

impl Mask {
    pub fn new(hub: &str) -> Self {
        Self { known: vec![(hub.to_owned(), "‹hub›".to_owned())] }
    }

    /// Calls a value by a name. The first name stays.
    pub fn call(&mut self, value: &str, name: &str) {
        if !value.is_empty() && self.known.iter().all(|(known, _)| known != value) {
            self.known.push((value.to_owned(), format!("‹{name}›")));
        }
        self.known.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    }

    /// The text with everything that differs from run to run under its name.
    pub fn over(mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, name) in &self.known {
            text = renamed(&text, value, name);
        }
        text = spans(&times(&text));
        let mut masked = String::with_capacity(text.len());
        let mut word = String::new();
        for c in text.chars().chain(['\n']) {
            match c.is_ascii_alphanumeric() || "-_".contains(c) {
                true => word.push(c),
                false => {
                    masked.push_str(&self.word(&word));
                    masked.push(c);
                    word.clear();
                }
            }
        }
        masked.pop();
        masked
    }

    /// A word as it is shown.
    fn word(&mut self, word: &str) -> String {
        let hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        let kind = match word.len() {
            36 if word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) => "id",
            43 if word.bytes().any(|b| b.is_ascii_uppercase()) => "id",
            64 if hex(word) => return "‹hash›".to_owned(),
            _ if word.starts_with("z6Mk") => "key",
            48 if word.bytes().any(|b| b.is_ascii_uppercase()) => return "‹token›".to_owned(),
            86 => return "‹signature›".to_owned(),
            13 if word.bytes().all(|b| b.is_ascii_digit()) => return "‹ms›".to_owned(),
            _ if is_counted(word) => "message",
            _ => return short(word),
        };
        if let Some((_, name)) = self.known.iter().find(|(known, _)| known == word) {
            return name.clone();
        }
        let number =
            self.known.iter().filter(|(_, name)| name.starts_with(&format!("‹{kind} "))).count();
        let name = format!("‹{kind} {}›", number + 1);
        self.known.push((word.to_owned(), name.clone()));
        name
    }
}

/// A text with a value under its name wherever it stands alone: a short one may also turn up by chance
/// within a signature.
fn renamed(text: &str, value: &str, name: &str) -> String {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(value) {
        let (before, after) = (&rest[..at], &rest[at + value.len()..]);
        let alone = !before.ends_with(inside) && !after.starts_with(inside);
        out.push_str(before);
        out.push_str(if alone { name } else { value });
        rest = after;
    }
    out + rest
}

/// An alias ends in digits made from an id.
fn short(word: &str) -> String {
    match word.rsplit_once('-') {
        Some((front, end)) if end.len() == 8 && end.bytes().all(|b| b.is_ascii_hexdigit()) => {
            format!("{front}-‹h›")
        }
        _ => word.to_owned(),
    }
}

/// Ids the tests make up: a word and two numbers.
fn is_counted(word: &str) -> bool {
    let mut parts = word.split('-');
    let kind = parts.next().is_some_and(|kind| kind.bytes().all(|b| b.is_ascii_uppercase()));
    let numbers: Vec<_> = parts.collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    kind && numbers.len() == 2 && numbers.iter().all(digits)
}

/// Times of day and date under one name.
fn times(text: &str) -> String {
    const FORM: &str = "0000-00-00T00:00:00";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let form: String = rest
            .chars()
            .take(FORM.len())
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        if form == FORM {
            let tail =
                rest[FORM.len()..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
            rest = tail.strip_prefix('Z').unwrap_or(tail);
            out.push_str("‹time›");
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// How long something took under one name.
fn spans(text: &str) -> String {
    let mut text = text.to_owned();
    for member in SPANS {
        let mut parts = text.split(member);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str(member);
            out.push_str("‹span›");
            out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        text = out;
    }
    text
}
