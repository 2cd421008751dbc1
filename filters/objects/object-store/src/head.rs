//! The head of a stored response, and its form in a file. Pure, and safe on foreign bytes.
//!
//! ```text
//! 0   magic and version of the format, 4 bytes
//! 4   length of the text, u32
//! 8   first half of the SHA-256 of the text, 16 bytes
//! 24  the text: kind, status, flags, times, length of the body, its place, stamp, URL, names in Vary, fields
//! ```
//!
//! Numbers are little-endian. The body begins at a multiple of [`PAD`] that leaves room, so that the fields of a 304 can be
//! written over the old head. Such a write is not atomic, and the checksum makes a torn head a miss.

use http_semantics::{FieldList, Fields};
use object_rules::conditions::preconditions_hold;
use object_rules::plain::{PlainField, is_unkeyed};
use object_rules::ranges::{Ranges, requested};
use object_rules::reply::{Reply, reply};
use object_rules::slices::{Blocks, MOST_LENGTH};
use object_rules::variant::is_unread_br;
use object_rules::{Life, Use};
use sha2::{Digest, Sha256};

use crate::key::first_half;
use crate::system::{chance, now_s};

/// The most bytes of an encoded head.
pub const MAX_HEAD: usize = 64 * 1024;
/// The most fields of a response, and the most names in `Vary`.
pub const MAX_FIELDS: usize = 256;
/// The farthest place where a body may begin, in bytes.
pub const MAX_BODY_AT: u64 = 65 * 1024;

/// The last digit is the version of the format. A reader takes a file of another version for absent.
const MAGIC: [u8; 4] = *b"LHO1";
const FIXED: usize = 24;
const PAD: usize = 512;
/// Bytes that a 304 usually adds: a longer `date`, `age` or `cache-control`.
const ROOM: usize = 128;
/// The same for a body in blocks, which is never copied.
const SLICED_ROOM: usize = 4096;
/// The bodies of sliced files begin at a multiple of this, so that blocks do not share pages with the head.
const SLICED_PAD: usize = 4096;
/// The bytes of a block in the map.
pub(crate) const MAP_ENTRY: u64 = 16;

const ALWAYS_VALIDATE: u8 = 1;
const NEVER_STALE: u8 = 2;
const PUBLIC: u8 = 4;

/// A file holds one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A response.
    Object,
    /// A marker, without a body: responses of this URL depend on the fields in `vary`.
    Varies,
    /// A response whose body comes in blocks. [`Slices`](crate::Slices) has the form of the file.
    Slices,
}

/// A response without its body, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// A response or a marker.
    pub kind: Kind,
    /// The URL, compared on each lookup: two URLs may share a hash.
    pub url: Vec<u8>,
    /// The status of the response. 0 for a marker.
    pub status: u16,
    /// The fields of the response, without pseudo fields.
    pub fields: FieldList,
    /// How long the response may be reused.
    pub life: Life,
    /// The names in `Vary`.
    pub vary: Vec<Vec<u8>>,
    /// The length of the body in bytes. The store sets it when the body is complete.
    pub length: u64,
}

impl Head {
    /// Returns the fields as the rules read them. `:status` is one of them.
    pub fn as_fields(&self) -> Fields<'_> {
        self.fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect()
    }

    /// Decides the use that a request may make of the response. None: the origin must judge, because the request has an unkeyed
    /// field, a condition that may be false, or a range that is the origin's, or because nobody decompresses br for it.
    pub fn use_for(&self, request: &Fields<'_>, plain_fields: &[PlainField], now_s: u64) -> Option<Use> {
        let stored = self.as_fields();
        if is_unkeyed(request, &self.vary, plain_fields)
            || !preconditions_hold(request, &stored)
            || is_unread_br(request, &stored)
        {
            return None;
        }
        let life = self.life.allows(request, now_s);
        let is_origins = life != Use::Unavailable && requested(request, &stored, self.length) == Ranges::Origins;
        (!is_origins).then_some(life)
    }

    /// Returns the response that a request gets. `fields` are those of [`Self::as_fields`], or some of them.
    pub fn reply<'a>(&self, request: &Fields<'_>, fields: &Fields<'a>) -> Reply<'a> {
        reply(request, fields, self.length, self.life.age_at_s(now_s()), chance)
    }

    /// Returns the head of a marker.
    pub fn varies(url: &[u8], names: &[Vec<u8>]) -> Self {
        Self {
            kind: Kind::Varies,
            url: url.to_vec(),
            status: 0,
            fields: FieldList::new(),
            life: Life::default(),
            vary: names.to_vec(),
            length: 0,
        }
    }
}

/// A head, and where its body lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The head.
    pub head: Head,
    /// Where the body begins in the file, in bytes.
    pub body_at: u64,
    /// A number that no other body has. It tells a refreshed file from a replaced one.
    pub stamp: u64,
}

impl Placed {
    /// Returns where the map of the blocks begins in a sliced file. An entry does not cross a page.
    pub(crate) fn map_at(&self) -> u64 {
        self.body_at.saturating_add(self.head.length).checked_next_multiple_of(PAD as u64).unwrap_or(u64::MAX)
    }

    /// Returns where the file ends.
    pub(crate) fn end(&self) -> u64 {
        match self.head.kind {
            Kind::Object | Kind::Varies => self.body_at.saturating_add(self.head.length),
            Kind::Slices => {
                let blocks = Blocks { length: self.head.length };
                self.map_at().saturating_add(blocks.count().saturating_mul(MAP_ENTRY))
            }
        }
    }
}

/// The reason why bytes are no head, or why a head cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadError {
    /// The bytes have another format or version.
    Foreign,
    /// The bytes end before the head does.
    Short,
    /// The checksum does not fit: the head is torn.
    Torn,
    /// The checksum fits, but the contents do not.
    Malformed,
    /// The head exceeds [`MAX_HEAD`] or [`MAX_FIELDS`].
    TooLarge,
}

/// Returns where the body begins for a head that takes `encoded` bytes.
pub(crate) fn body_at(encoded: usize) -> u64 {
    ((encoded + ROOM).div_ceil(PAD) * PAD) as u64
}

/// Returns where the body of a sliced file begins.
pub(crate) fn sliced_body_at(encoded: usize) -> u64 {
    // The largest head fits as well.
    ((encoded + SLICED_ROOM).div_ceil(SLICED_PAD) * SLICED_PAD).min(MAX_HEAD) as u64
}

/// Writes a head. Its length does not depend on numbers in it.
///
/// # Errors
/// [`HeadError::TooLarge`] beyond the limits. [`HeadError::Malformed`] if the place of the body is none.
pub fn encode(placed: &Placed) -> Result<Vec<u8>, HeadError> {
    let Placed { head, body_at, stamp } = placed;
    if head.fields.len() > MAX_FIELDS || head.vary.len() > MAX_FIELDS {
        return Err(HeadError::TooLarge);
    }
    check(placed)?;
    let life = &head.life;
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags =
        flag(life.always_validate, ALWAYS_VALIDATE) | flag(life.never_stale, NEVER_STALE) | flag(life.public, PUBLIC);
    let mut text = Vec::with_capacity(1024);
    text.push(match head.kind {
        Kind::Object => 0,
        Kind::Varies => 1,
        Kind::Slices => 2,
    });
    text.extend_from_slice(&head.status.to_le_bytes());
    text.push(flags);
    let times = [life.received_s, life.initial_age_s, life.lifetime_s, life.stale_while_revalidate_s];
    for number in times.into_iter().chain([life.stale_if_error_s, head.length, *body_at, *stamp]) {
        text.extend_from_slice(&number.to_le_bytes());
    }
    put(&mut text, &head.url)?;
    put_count(&mut text, head.vary.len())?;
    for name in &head.vary {
        put(&mut text, name)?;
    }
    put_count(&mut text, head.fields.len())?;
    for (name, value) in &head.fields {
        put(&mut text, name)?;
        put(&mut text, value)?;
    }
    let length = u32::try_from(text.len()).map_err(|_| HeadError::TooLarge)?;
    let mut out = Vec::with_capacity(FIXED + text.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&checksum(&text));
    out.extend_from_slice(&text);
    Ok(out)
}

/// Reads a head from the beginning of a file. Bytes after the head do not count.
///
/// # Errors
/// Bytes that [`encode`] did not write give an error. No bytes make it panic, or take more memory than a few times
/// [`MAX_HEAD`].
pub fn decode(bytes: &[u8]) -> Result<Placed, HeadError> {
    let mut fixed = Parser(bytes);
    let magic: [u8; 4] = fixed.array().ok_or(HeadError::Short)?;
    if magic != MAGIC {
        return Err(HeadError::Foreign);
    }
    let length = u32::from_le_bytes(fixed.array().ok_or(HeadError::Short)?) as usize;
    let sum: [u8; 16] = fixed.array().ok_or(HeadError::Short)?;
    if length > MAX_HEAD - FIXED {
        return Err(HeadError::TooLarge);
    }
    let text = fixed.bytes(length).ok_or(HeadError::Short)?;
    if checksum(text) != sum {
        return Err(HeadError::Torn);
    }
    let placed = parse(text).ok_or(HeadError::Malformed)?;
    check(&placed)?;
    Ok(placed)
}

/// Refuses places in which no body can lie. Files do not reach beyond `i64::MAX`.
fn check(placed: &Placed) -> Result<(), HeadError> {
    let (head, body_at) = (&placed.head, &placed.body_at);
    let is_aligned = body_at.is_multiple_of(PAD as u64) && *body_at <= MAX_BODY_AT;
    let end = i64::try_from(placed.end());
    let fits_kind = match head.kind {
        Kind::Object => true,
        Kind::Varies => head.status == 0 && head.length == 0 && head.fields.is_empty(),
        Kind::Slices => head.status == 200 && (1..=MOST_LENGTH).contains(&head.length),
    };
    if is_aligned && end.is_ok() && fits_kind { Ok(()) } else { Err(HeadError::Malformed) }
}

fn checksum(text: &[u8]) -> [u8; 16] {
    first_half(Sha256::new().chain_update(text))
}

fn put(out: &mut Vec<u8>, piece: &[u8]) -> Result<(), HeadError> {
    if FIXED + out.len() + 4 + piece.len() > MAX_HEAD {
        return Err(HeadError::TooLarge);
    }
    let length = u32::try_from(piece.len()).map_err(|_| HeadError::TooLarge)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(piece);
    Ok(())
}

fn put_count(out: &mut Vec<u8>, count: usize) -> Result<(), HeadError> {
    let count = u16::try_from(count).map_err(|_| HeadError::TooLarge)?;
    out.extend_from_slice(&count.to_le_bytes());
    if FIXED + out.len() > MAX_HEAD { Err(HeadError::TooLarge) } else { Ok(()) }
}

fn parse(text: &[u8]) -> Option<Placed> {
    let mut text = Parser(text);
    let kind = match text.array::<1>()? {
        [0] => Kind::Object,
        [1] => Kind::Varies,
        [2] => Kind::Slices,
        _ => return None,
    };
    let status = u16::from_le_bytes(text.array()?);
    let [flags] = text.array()?;
    if flags & !(ALWAYS_VALIDATE | NEVER_STALE | PUBLIC) != 0 {
        return None;
    }
    let life = Life {
        received_s: text.number()?,
        initial_age_s: text.number()?,
        lifetime_s: text.number()?,
        stale_while_revalidate_s: text.number()?,
        stale_if_error_s: text.number()?,
        always_validate: flags & ALWAYS_VALIDATE != 0,
        never_stale: flags & NEVER_STALE != 0,
        public: flags & PUBLIC != 0,
    };
    let (length, body_at, stamp) = (text.number()?, text.number()?, text.number()?);
    let url = text.piece()?;
    let vary = (0..text.count()?).map(|_| text.piece()).collect::<Option<_>>()?;
    let fields = (0..text.count()?).map(|_| Some((text.piece()?, text.piece()?))).collect::<Option<_>>()?;
    let head = Head { kind, url, status, fields, life, vary, length };
    text.0.is_empty().then_some(Placed { head, body_at, stamp })
}

/// The bytes that are left.
struct Parser<'a>(&'a [u8]);

impl<'a> Parser<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (some, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(some)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self) -> Option<usize> {
        let count = usize::from(u16::from_le_bytes(self.array()?));
        (count <= MAX_FIELDS).then_some(count)
    }

    fn piece(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        self.bytes(length).map(<[u8]>::to_vec)
    }
}
