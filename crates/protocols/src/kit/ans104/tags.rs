//! Tags: an Avro array of names and values.

use super::{BadItem, ByteReader};

/// A name and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// Case-sensitive.
    pub name: &'a str,
    /// May be empty.
    pub value: &'a str,
}

/// Reads tags. There must be exactly `count`.
pub(super) fn read(raw: &[u8], count: u64) -> Result<Vec<Tag<'_>>, BadItem> {
    if raw.is_empty() {
        return if count == 0 { Ok(Vec::new()) } else { Err(BadItem::TagCount) };
    }
    let mut rest = AvroReader(ByteReader::new(raw));
    // Every tag takes at least two bytes, so the input's size bounds this vector.
    let mut tags = Vec::new();
    loop {
        let (block, size) = match rest.long()? {
            0 => break,
            block if block < 0 => (block.unsigned_abs(), Some(rest.long()?)),
            block => (block.unsigned_abs(), None),
        };
        let before = rest.left();
        for _ in 0..block {
            tags.push(Tag { name: rest.text()?, value: rest.text()? });
        }
        let taken = before - rest.left();
        if size.is_some_and(|size| usize::try_from(size) != Ok(taken)) {
            return Err(BadItem::BadTags);
        }
    }
    if rest.left() > 0 {
        return Err(BadItem::BadTags);
    }
    match u64::try_from(tags.len()) == Ok(count) {
        true => Ok(tags),
        false => Err(BadItem::TagCount),
    }
}

/// Writes tags as one block; writes nothing if there are none.
pub(super) fn write(tags: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    if tags.is_empty() {
        return out;
    }
    put_long(&mut out, tags.len());
    for (name, value) in tags {
        for text in [name, value] {
            put_long(&mut out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }
    out.push(0);
    out
}

fn put_long(out: &mut Vec<u8>, number: usize) {
    // Lengths are never negative. Zigzag encoding turns them into even numbers.
    let mut left = (number as u64) << 1;
    loop {
        let low = (left & 0x7f) as u8;
        left >>= 7;
        if left == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

struct AvroReader<'a>(ByteReader<'a>);

impl<'a> AvroReader<'a> {
    /// A number: seven bits per byte, the lowest first, zigzag.
    fn long(&mut self) -> Result<i64, BadItem> {
        let mut value: u64 = 0;
        for at in 0..10 {
            let byte = self.0.take(1).map_err(|_| BadItem::BadTags)?[0];
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit only.
            if at == 9 && bits > 1 {
                return Err(BadItem::BadTags);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                return Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
            }
        }
        Err(BadItem::BadTags)
    }

    fn text(&mut self) -> Result<&'a str, BadItem> {
        let length = usize::try_from(self.long()?).map_err(|_| BadItem::BadTags)?;
        let bytes = self.0.take(length).map_err(|_| BadItem::BadTags)?;
        std::str::from_utf8(bytes).map_err(|_| BadItem::TagText)
    }

    fn left(&self) -> usize {
        self.0.remaining()
    }
}
