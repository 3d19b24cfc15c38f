//! The JSON scanner: one pass over the text, one level of recursion per level of nesting.
//!
//! `at` only stops before or after an ASCII byte, so it is always on a character boundary.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{DEPTH_MAX, ELEMENTS_MAX, Json, JsonError, JsonErrorKind, JsonValue};

/// Capacity for as many members as most objects have, so that one allocation is enough.
const USUAL_MEMBERS: usize = 8;

/// What programs write for floats that JSON cannot represent.
const NON_FINITE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// A position in a text, and the limits used up so far.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: usize,
    parts: usize,
    /// Members of the outermost object that may be one of [`NON_FINITE`].
    figures: &'a [&'a str],
}

/// Reads the one value that `text` consists of.
pub(super) fn read_document<'a>(
    text: &'a str,
    figures: &'a [&'a str],
) -> Result<Json<'a>, JsonError> {
    let mut scanner = Scanner { text, at: 0, depth: 0, parts: 0, figures };
    let value = scanner.value()?;
    scanner.skip_blanks();
    if scanner.peek().is_some() {
        return Err(scanner.error(JsonErrorKind::TrailingText));
    }
    Ok(value)
}

impl<'a> Scanner<'a> {
    fn value(&mut self) -> Result<Json<'a>, JsonError> {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => JsonValue::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => JsonValue::Number(self.number()?),
            Some(b'n') => self.word("null", JsonValue::Null)?,
            Some(b't') => self.word("true", JsonValue::Bool(true))?,
            Some(b'f') => self.word("false", JsonValue::Bool(false))?,
            _ => return Err(self.unexpected()),
        };
        Ok(Json { raw: &self.text[start..self.at], kind })
    }

    /// Steps over an opening bracket, reads the content, and restores the depth.
    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<JsonValue<'a>, JsonError>,
    ) -> Result<JsonValue<'a>, JsonError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(JsonErrorKind::TooDeep));
        }
        self.at += 1;
        self.depth += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn list(&mut self) -> Result<JsonValue<'a>, JsonError> {
        let mut items = Vec::new();
        self.skip_blanks();
        if self.eat(b']') {
            return Ok(JsonValue::Array(items));
        }
        loop {
            self.count_part()?;
            items.push(self.value()?);
            if self.closes(b']')? {
                return Ok(JsonValue::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<JsonValue<'a>, JsonError> {
        self.skip_blanks();
        if self.eat(b'}') {
            return Ok(JsonValue::Object(Vec::new()));
        }
        let mut members = Vec::with_capacity(USUAL_MEMBERS);
        let mut seen = MemberNames::default();
        loop {
            self.count_part()?;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let at = self.at;
            let name = self.string()?;
            let name =
                seen.admit(name, &members).map_err(|why| JsonError { offset: at, kind: why })?;
            self.skip_blanks();
            if !self.eat(b':') {
                return Err(self.unexpected());
            }
            let value = match self.non_finite(&name) {
                Some(value) => value,
                None => self.value()?,
            };
            members.push((name, value));
            if self.closes(b'}')? {
                return Ok(JsonValue::Object(members));
            }
        }
    }

    /// A non-finite number, if there is one here and it is allowed.
    fn non_finite(&mut self, name: &str) -> Option<Json<'a>> {
        if self.depth != 1 || !self.figures.contains(&name) {
            return None;
        }
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let length = NON_FINITE.iter().find(|word| rest.starts_with(**word))?.len();
        self.at += length;
        let raw = &rest[..length];
        Some(Json { raw, kind: JsonValue::String(Cow::Borrowed(raw)) })
    }

    /// After a member or item: whether the bracket closes; if not, moves to the next one.
    fn closes(&mut self, bracket: u8) -> Result<bool, JsonError> {
        self.skip_blanks();
        if self.eat(bracket) {
            return Ok(true);
        }
        if !self.eat(b',') {
            return Err(self.unexpected());
        }
        self.skip_blanks();
        Ok(false)
    }

    fn count_part(&mut self) -> Result<(), JsonError> {
        if self.parts == ELEMENTS_MAX {
            return Err(self.error(JsonErrorKind::TooManyElements));
        }
        self.parts += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        self.eat(b'-');
        let mut sound = self.eat(b'0') || self.eat_digits();
        if self.eat(b'.') {
            sound &= self.eat_digits();
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            sound &= self.eat_digits();
        }
        // `01`, `1.2.3` and `0x1F` are reported as bad numbers, not as unexpected text after a
        // number.
        let ends = !self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b));
        if !sound || !ends {
            return Err(JsonError { offset: start, kind: JsonErrorKind::BadNumber });
        }
        Ok(&self.text[start..self.at])
    }

    /// Takes all digits here; returns whether there was one.
    fn eat_digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn word(&mut self, word: &str, kind: JsonValue<'a>) -> Result<JsonValue<'a>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(kind)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn unexpected(&self) -> JsonError {
        self.error(
            self.text[self.at..]
                .chars()
                .next()
                .map_or(JsonErrorKind::UnexpectedEnd, JsonErrorKind::UnexpectedCharacter),
        )
    }

    pub(super) fn error(&self, why: JsonErrorKind) -> JsonError {
        JsonError { offset: self.at, kind: why }
    }
}

/// The names of an object so far, hashed only once there are too many for a linear search.
#[derive(Default)]
struct MemberNames<'a>(HashSet<Cow<'a, str>>);

impl<'a> MemberNames<'a> {
    /// Returns `name` if none of `members` has it, and records it.
    fn admit(
        &mut self,
        name: Cow<'a, str>,
        members: &[(Cow<'a, str>, Json<'a>)],
    ) -> Result<Cow<'a, str>, JsonErrorKind> {
        const FEW: usize = 16;
        let mut names = members.iter().map(|(name, _)| name);
        let new = if members.len() < FEW {
            names.all(|other| *other != name)
        } else {
            if self.0.is_empty() {
                self.0.extend(names.cloned());
            }
            self.0.insert(name.clone())
        };
        if new { Ok(name) } else { Err(JsonErrorKind::duplicate(&name)) }
    }
}

impl<'a> Scanner<'a> {
    /// Reads the string whose opening quote is here.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let mut unescaped: Option<String> = None;
        loop {
            let piece = self.plain_piece();
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match unescaped {
                        None => Cow::Borrowed(piece),
                        Some(before) => Cow::Owned(before + piece),
                    });
                }
                Some(b'\\') => {
                    let built = unescaped.get_or_insert_default();
                    built.push_str(piece);
                    built.push(self.escape()?);
                }
                Some(_) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            }
        }
    }

    /// Steps over everything up to the next quote, backslash or control character.
    fn plain_piece(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let stop = |b: u8| matches!(b, b'"' | b'\\' | 0..=0x1f);
        let length = rest.bytes().position(stop).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads the escape whose backslash is here.
    fn escape(&mut self) -> Result<char, JsonError> {
        let plain = match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => return self.unicode_escape(),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.error(JsonErrorKind::BadEscape)),
        };
        self.at += 2;
        Ok(plain)
    }

    /// Reads `\uXXXX`, or a pair of them that makes one character above U+FFFF.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.code_unit(self.at).ok_or_else(|| self.error(JsonErrorKind::BadEscape))?;
        if let Some(c) = char::from_u32(u32::from(first)) {
            self.at += ESCAPE_LEN;
            return Ok(c);
        }
        let second = self.code_unit(self.at + ESCAPE_LEN);
        let pair = char::decode_utf16([first].into_iter().chain(second)).next();
        let Some(Ok(c)) = pair else { return Err(self.error(JsonErrorKind::LoneSurrogate)) };
        self.at += 2 * ESCAPE_LEN;
        Ok(c)
    }

    /// The UTF-16 unit written as `\uXXXX` at `at`, if there is one.
    fn code_unit(&self, at: usize) -> Option<u16> {
        let digits = self.text.get(at..at + ESCAPE_LEN)?.strip_prefix("\\u")?;
        // `from_str_radix` would accept a sign as well.
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| hex)
    }
}

/// The length of `\uXXXX` in bytes.
const ESCAPE_LEN: usize = 6;
