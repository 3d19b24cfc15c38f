//! Times in RFC 3339 text, for reading and writing (requirement C7).
//!
//! jiff knows the calendar, but it accepts more than RFC 3339 allows (spaces, zone names, missing
//! seconds) and also less (nine decimals, and no instant in the last hours of 9999). So the shape
//! is checked here, and jiff only computes days and durations.

use jiff::SignedDuration;
use jiff::civil::{DateTime, datetime};
use rialto_core::time::Timestamp;

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// The text has the wrong form, or names a day or hour that does not exist.
    #[error("must be an RFC 3339 time like 2026-02-11T14:15:09Z")]
    NotRfc3339,
    /// Without an offset the instant is unknown.
    #[error("has no offset: end it with Z or one like +01:00")]
    NoOffset,
    /// Second 60: the hub's clock has no such second, and mapping it to another would be a guess.
    #[error("is a leap second, which is not supported")]
    LeapSecond,
    /// Before the first or after the last instant the hub can write.
    #[error("is outside the years 1970 to 9999")]
    OutOfRange,
}

/// The start of counting.
const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
/// 9999-12-31T23:59:59.999Z, the last instant with a four-digit year.
const LAST_MS: i64 = 253_402_300_799_999;
const DAY_MS: u64 = 86_400_000;
/// The part of every RFC 3339 time before fraction and offset; `0` is any digit.
const SHAPE: &str = "0000-00-00T00:00:00";

/// Parses an RFC 3339 time with its offset; digits finer than a millisecond are dropped.
pub fn parse(text: &str) -> Result<Timestamp, BadTime> {
    let (local, rest) = text.split_at_checked(SHAPE.len()).ok_or(BadTime::NotRfc3339)?;
    if !has_shape(local, SHAPE) {
        return Err(BadTime::NotRfc3339);
    }
    let (fraction_ms, offset) = split_fraction(rest)?;
    let offset_ms = read_offset(offset)?;
    if local.ends_with(":60") {
        return Err(BadTime::LeapSecond);
    }
    let local: DateTime = local.parse().map_err(|_| BadTime::NotRfc3339)?;
    let ms = local.duration_since(EPOCH).as_secs() * 1_000 + fraction_ms - offset_ms;
    if (0..=LAST_MS).contains(&ms) { Ok(Timestamp(ms)) } else { Err(BadTime::OutOfRange) }
}

/// `2026-02-11T14:15:09Z`: whole seconds, fractions dropped.
pub fn format_seconds(time: Timestamp) -> String {
    format!("{:.0}Z", civil(time))
}

/// `2026-03-20T10:00:00.000Z`: always three decimals.
pub fn format_millis(time: Timestamp) -> String {
    String::from_utf8_lossy(&format_millis_bytes(time)).into_owned()
}

/// The same as bytes, for responses that are written thousands of times a second.
pub fn format_millis_bytes(time: Timestamp) -> [u8; 24] {
    let ms = time.0.clamp(0, LAST_MS).unsigned_abs();
    let (days, ms) = (ms / DAY_MS, ms % DAY_MS);
    let (year, month, day) = date(days);
    let mut out = *b"0000-00-00T00:00:00.000Z";
    for (at, digits, value) in [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, ms / 3_600_000),
        (14, 2, ms / 60_000 % 60),
        (17, 2, ms / 1_000 % 60),
        (20, 3, ms % 1_000),
    ] {
        let mut value = value;
        for place in out[at..at + digits].iter_mut().rev() {
            *place = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    out
}

/// `Wed, 11 Feb 2026 14:15:09 GMT`: the form of times in HTTP headers (RFC 9110, section 5.6.7).
pub fn format_http(time: Timestamp) -> String {
    civil(time).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Year, month and day of a day counted from 1970. Years are taken to begin in March, so that the
/// leap day is the last of its year and months repeat every five.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// An instant as year to millisecond in UTC. Instants that RFC 3339 cannot express (such as
/// `Timestamp::NEVER`) become the nearest one it can.
fn civil(time: Timestamp) -> DateTime {
    let since_epoch = SignedDuration::from_millis(time.0.clamp(0, LAST_MS));
    EPOCH.saturating_add(since_epoch)
}

fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(given, wanted): (u8, u8)| match wanted {
        b'0' => given.is_ascii_digit(),
        // RFC 3339 section 5.6: "T" may be lower case.
        _ => given.eq_ignore_ascii_case(&wanted),
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// Splits `.123456Z` into 123 and `Z`.
fn split_fraction(text: &str) -> Result<(i64, &str), BadTime> {
    let Some(text) = text.strip_prefix('.') else { return Ok((0, text)) };
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, offset) = text.split_at(end);
    if digits.is_empty() {
        return Err(BadTime::NotRfc3339);
    }
    let thousandths = digits.bytes().chain([b'0', b'0']).take(3);
    Ok((thousandths.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0')), offset))
}

/// How far ahead of UTC `Z` or `+01:00` is.
fn read_offset(text: &str) -> Result<i64, BadTime> {
    if text.is_empty() {
        return Err(BadTime::NoOffset);
    }
    if text.eq_ignore_ascii_case("z") {
        return Ok(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    if !has_shape(text, "+00:00") && !has_shape(text, "-00:00") {
        return Err(BadTime::NotRfc3339);
    }
    let number = |digits: &str| digits.parse::<i64>().map_err(|_| BadTime::NotRfc3339);
    let (hours, minutes) = (number(&text[1..3])?, number(&text[4..6])?);
    if hours > 23 || minutes > 59 {
        return Err(BadTime::NotRfc3339);
    }
    Ok(sign * (hours * 60 + minutes) * 60_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_moment_has_many_texts() {
        let noon = Ok(Timestamp(1_770_811_200_000));
        for text in [
            "2026-02-11T12:00:00Z",
            "2026-02-11t12:00:00z",
            "2026-02-11T12:00:00.0Z",
            "2026-02-11T12:00:00.000999999999999999Z",
            "2026-02-11T12:00:00+00:00",
            "2026-02-11T12:00:00-00:00",
            "2026-02-11T13:30:00+01:30",
            "2026-02-12T11:59:00+23:59",
            "2026-02-10T12:01:00-23:59",
        ] {
            assert_eq!(parse(text), noon, "{text}");
        }
        assert_eq!(parse("2026-02-11T12:00:00.5Z"), Ok(Timestamp(1_770_811_200_500)));
        assert_eq!(parse("2026-02-11T12:00:00.07Z"), Ok(Timestamp(1_770_811_200_070)));
    }

    #[test]
    fn headers_of_http_have_their_own_form() {
        let texts = [
            (784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ];
        for (ms, text) in texts {
            assert_eq!(format_http(Timestamp(ms)), text);
        }
    }

    #[test]
    fn what_is_no_rfc_3339_is_refused() {
        for text in [
            "",
            "now",
            "2026-02-11",
            "2026-02-11 12:00:00Z",
            "2026-02-11T12:00Z",
            "2026-02-11T12Z",
            "20260211T120000Z",
            "2026-2-11T12:00:00Z",
            "+002026-02-11T12:00:00Z",
            "26-02-11T12:00:00Z",
            "2026-02-11T12:00:00,5Z",
            "2026-02-11T12:00:00.Z",
            "2026-02-11T12:00:00 Z",
            "2026-02-11T12:00:00Z ",
            " 2026-02-11T12:00:00Z",
            "2026-02-11T12:00:00+24:00",
            "2026-02-11T12:00:00-24:00",
            "2026-02-11T12:00:00+01:60",
            "2026-02-11T12:00:00+0100",
            "2026-02-11T12:00:00+01",
            "2026-02-11T12:00:00+01:00:00",
            "2026-02-11T12:00:00UTC",
            "2026-02-11T12:00:00Z[UTC]",
            "2026-02-11T12:00:00+01:00[Europe/Berlin]",
            "2026-02-11T24:00:00Z",
            "2026-02-11T12:60:00Z",
            "2026-02-11T12:00:61Z",
            "2026-02-29T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "２０２６-02-11T12:00:00Z",
            "2026-02-11T12:00:0０Z",
            "2026-02-11T12:00:00\u{2212}01:00",
            "2026-02-11T12:00:00.5.5Z",
            "1770811200000",
        ] {
            assert_eq!(parse(text), Err(BadTime::NotRfc3339), "{text}");
        }
    }

    #[test]
    fn a_time_without_offset_is_refused_as_such() {
        assert_eq!(parse("2026-02-11T12:00:00"), Err(BadTime::NoOffset));
        assert_eq!(parse("2026-02-11T12:00:00.123"), Err(BadTime::NoOffset));
    }

    #[test]
    fn leap_seconds_are_refused_even_where_there_was_one() {
        assert_eq!(parse("2016-12-31T23:59:60Z"), Err(BadTime::LeapSecond));
        assert_eq!(parse("2026-02-11T12:00:60Z"), Err(BadTime::LeapSecond));
    }

    #[test]
    fn the_first_and_the_last_moment_can_be_read_and_written() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Ok(Timestamp(0)));
        assert_eq!(parse("1969-12-31T23:00:00-01:00"), Ok(Timestamp(0)));
        assert_eq!(parse("9999-12-31T23:59:59.999Z"), Ok(Timestamp(LAST_MS)));
        assert_eq!(parse("1969-12-31T23:59:59.999Z"), Err(BadTime::OutOfRange));
        assert_eq!(parse("1970-01-01T00:00:00+00:01"), Err(BadTime::OutOfRange));
        assert_eq!(parse("9999-12-31T23:59:59-00:01"), Err(BadTime::OutOfRange));
        assert_eq!(parse("0000-01-01T00:00:00Z"), Err(BadTime::OutOfRange));
        assert_eq!(format_millis(Timestamp::NEVER), "9999-12-31T23:59:59.999Z");
        assert_eq!(format_seconds(Timestamp::NEVER), "9999-12-31T23:59:59Z");
        assert_eq!(format_millis(Timestamp(i64::MIN)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn written_times_look_like_the_books_say() {
        assert_eq!(format_seconds(Timestamp(1_770_819_309_999)), "2026-02-11T14:15:09Z");
        assert_eq!(format_millis(Timestamp(1_774_000_800_000)), "2026-03-20T10:00:00.000Z");
        assert_eq!(format_millis(Timestamp(1_774_000_800_070)), "2026-03-20T10:00:00.070Z");
    }

    proptest! {
        #[test]
        fn printing_then_parsing_changes_nothing(ms in 0..=LAST_MS) {
            prop_assert_eq!(parse(&format_millis(Timestamp(ms))), Ok(Timestamp(ms)));
            prop_assert_eq!(parse(&format_seconds(Timestamp(ms))), Ok(Timestamp(ms - ms % 1_000)));
        }

        #[test]
        fn the_fast_way_prints_what_the_careful_way_does(ms in 0..=LAST_MS) {
            let careful = format!("{:.3}Z", civil(Timestamp(ms)));
            prop_assert_eq!(format_millis(Timestamp(ms)), careful);
        }

        #[test]
        fn later_moments_have_later_texts(a in 0..=LAST_MS, b in 0..=LAST_MS) {
            prop_assert_eq!(format_millis(Timestamp(a)).cmp(&format_millis(Timestamp(b))), a.cmp(&b));
        }

        #[test]
        fn no_text_makes_the_reader_panic(
            text in "\\PC{0,30}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.+:Z0-9é-]{0,8}",
        ) {
            let _ = parse(&text);
        }
    }
}
