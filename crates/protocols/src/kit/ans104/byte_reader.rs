//! A reader over bytes that never reads past their end.

use super::error::BadItem;

/// The bytes that remain.
pub struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], BadItem> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(BadItem::CutShort)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u16(&mut self) -> Result<u16, BadItem> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes(bytes.try_into().map_err(|_| BadItem::CutShort)?))
    }

    pub fn u64(&mut self) -> Result<u64, BadItem> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| BadItem::CutShort)?))
    }

    /// An optional part. The byte before it says whether it is present.
    pub fn optional(
        &mut self,
        length: usize,
        name: &'static str,
    ) -> Result<Option<&'a [u8]>, BadItem> {
        match self.take(1)? {
            [0] => Ok(None),
            [1] => self.take(length).map(Some),
            _ => Err(BadItem::Presence(name)),
        }
    }

    pub fn remaining(&self) -> usize {
        self.0.len()
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}
