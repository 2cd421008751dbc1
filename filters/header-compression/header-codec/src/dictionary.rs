//! The knowledge that both ends share before they meet: common names, values and blocks, and the probability of each
//! decision in each context.
//!
//! A dictionary has an id and never changes after its release; a better one gets the next id. Its file has this layout,
//! with numbers in little endian:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | `LHHD` |
//! | 1 | id |
//! | 1 | binary logarithm of the number of slots |
//! | 2 + 2n | n probabilities of true, by sum of votes from the lowest sum to the highest |
//! | 2 + ... | names, each a length byte and its text, most frequent first |
//! | for each name: 1 + ... | its values, each a two-byte length and its text, most frequent first |
//! | for requests, then responses: 1 + ... | blocks: number of fields, then for each the index of its name and a value |
//! | 2 x slots | slots: the vote (signed), then the check |

use crate::block::Block;
use crate::exchange::Side;
use crate::hash;

/// First bytes of a dictionary file.
const MAGIC: &[u8; 4] = b"LHHD";

/// A dictionary, ready to use.
#[derive(Debug, Clone)]
pub struct Dictionary {
    id: u8,
    slot_bits: u32,
    slots: Vec<[u8; 2]>,
    probabilities: Vec<u16>,
    /// The hashes of `names`, close together in memory. Every new value searches them.
    hashes: Vec<u32>,
    names: Vec<Name>,
    requests: Vec<Block>,
    responses: Vec<Block>,
}

#[derive(Debug, Clone)]
struct Name {
    text: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl Dictionary {
    /// Reads a dictionary file. Returns `None` if it is not a valid one.
    pub fn from_bytes(file: &[u8]) -> Option<Self> {
        let mut reader = Reader(file);
        if reader.take(4)? != MAGIC {
            return None;
        }
        let id = reader.byte()?;
        let slot_bits = u32::from(reader.byte()?);
        let sums = usize::from(reader.short()?);
        let probabilities = (0..sums).map(|_| reader.short()).collect::<Option<Vec<_>>>()?;
        let count = reader.short()?;
        let mut names = (0..count)
            .map(|_| {
                let length = reader.byte()?;
                let text = reader.take(usize::from(length))?.to_vec();
                Some(Name { text, values: Vec::new() })
            })
            .collect::<Option<Vec<_>>>()?;
        for name in &mut names {
            let count = reader.byte()?;
            name.values = (0..count).map(|_| reader.long_text()).collect::<Option<_>>()?;
        }
        let requests = reader.blocks(&names)?;
        let responses = reader.blocks(&names)?;
        let (slots, _) = reader.0.as_chunks::<2>();
        let expected = 1_usize.checked_shl(slot_bits)?;
        let usable = (1..=24).contains(&slot_bits)
            && slots.len() == expected
            && sums % 2 == 1
            && names.len() <= 256
            && probabilities.iter().all(|probability| *probability > 0);
        let hashes = names.iter().map(|name| hash::bytes(&name.text)).collect();
        let slots = slots.to_vec();
        usable.then_some(Self { id, slot_bits, slots, probabilities, hashes, names, requests, responses })
    }

    /// Returns dictionary 1, which format 1 uses.
    pub fn first() -> Option<Self> {
        Self::from_bytes(include_bytes!("../dictionaries/v1.bin"))
    }

    /// Returns its id.
    pub fn id(&self) -> u8 {
        self.id
    }

    /// Returns the probability of true in `contexts`, in units of 2^-16. Every context that the dictionary holds has a
    /// vote.
    pub(crate) fn probability(&self, contexts: &[u32]) -> u32 {
        let votes: i32 = contexts
            .iter()
            .map(|context| match self.slots.get((context >> (32 - self.slot_bits)) as usize) {
                Some([vote, check]) if *check == check_of(*context) => i32::from(vote.cast_signed()),
                _ => 0,
            })
            .sum();
        let middle = i32::try_from(self.probabilities.len() / 2).unwrap_or(0);
        let index = usize::try_from(votes.clamp(-middle, middle) + middle).unwrap_or(0);
        self.probabilities.get(index).copied().map_or(1 << 15, u32::from)
    }

    /// Returns the number of a name, if the dictionary holds it.
    pub(crate) fn number_of(&self, name: &[u8]) -> Option<u64> {
        let at = self.place_of(hash::bytes(name))?;
        self.names.get(at).filter(|known| known.text == name).and(u64::try_from(at).ok())
    }

    /// Returns the name with this number.
    pub(crate) fn name(&self, number: u64) -> Option<&[u8]> {
        usize::try_from(number).ok().and_then(|number| self.names.get(number)).map(|name| name.text.as_slice())
    }

    /// Returns the common values of a name. `name` is its hash.
    pub(crate) fn values(&self, name: u32) -> &[Vec<u8>] {
        let known = self.place_of(name).and_then(|at| self.names.get(at));
        known.map_or(&[], |known| known.values.as_slice())
    }

    fn place_of(&self, name: u32) -> Option<usize> {
        self.hashes.iter().position(|known| *known == name)
    }

    /// Returns the common blocks.
    pub(crate) fn blocks(&self, side: Side) -> &[Block] {
        match side {
            Side::Request => &self.requests,
            Side::Response => &self.responses,
        }
    }
}

/// Returns the part of a context that its slot keeps to distinguish it from other contexts of the same slot.
pub fn check_of(context: u32) -> u8 {
    (context & 0xff) as u8
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn long_text(&mut self) -> Option<Vec<u8>> {
        let length = self.short()?;
        self.take(usize::from(length)).map(<[u8]>::to_vec)
    }

    fn blocks(&mut self, names: &[Name]) -> Option<Vec<Block>> {
        let count = self.byte()?;
        (0..count)
            .map(|_| {
                let mut block = Block::default();
                for _ in 0..self.byte()? {
                    let name = names.get(usize::from(self.byte()?))?;
                    let value = self.long_text()?;
                    block.push(&name.text, &value).ok()?;
                }
                Some(block)
            })
            .collect()
    }
}
