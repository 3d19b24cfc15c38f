//! Strings: borrowed from the source where nothing is escaped, allocated where something is.

use std::borrow::Cow;

use super::scan::Scanner;
use super::{JsonError, JsonErrorKind};

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
