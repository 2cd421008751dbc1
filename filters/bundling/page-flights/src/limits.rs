//! Every bound, by name. Foreign bytes decide how much memory and work they cost; these numbers decide how much they get.

/// Objects of one flight. The median page of 2025 has 73.
pub(crate) const ENTRIES: usize = 192;
/// The longest URL that is bundled, in bytes.
pub(crate) const URL_BYTES: usize = 2048;
/// The largest object that is bundled: a larger one is better asked for by who can use it as it streams.
pub(crate) const OBJECT_BYTES: usize = 1 << 20;
/// The largest sum of an object's header names and values.
pub(crate) const HEAD_BYTES: usize = 8 << 10;
/// The largest parcel that is read, unpacked.
pub(crate) const PARCEL_BYTES: usize = 8 << 20;
/// Objects fetched at one time for one page.
pub(crate) const FETCHES: usize = 24;
/// The most that a proxy is expected to hand over of a page at once: its cache reads 256 KiB, and what moves URLs may add.
pub(crate) const CHUNK_BYTES: usize = 384 << 10;
/// Flights a worker of the far end carries at one time.
pub(crate) const FLIGHTS: usize = 256;
/// How long a flight may take, and its records are kept.
pub(crate) const FLIGHT_MS: u64 = 60_000;
/// What is learnt of pages is kept in so many values of the board, each with so many pages: 2048 pages of at most 10 KiB.
pub(crate) const LESSONS: u64 = 512;
pub(crate) const PAGES_PER_LESSONS: usize = 4;
/// URLs of one page that its markup does not name and browsers ask for all the same, as far as they are reported and
/// learnt, and the sum of their bytes.
pub(crate) const OTHERS: usize = 16;
pub(crate) const OTHERS_BYTES: usize = 2048;

/// Whether another such URL still has room beside `others`.
pub(crate) fn have_room<'o>(others: impl ExactSizeIterator<Item = &'o str>, url: &str) -> bool {
    others.len() < OTHERS && others.map(str::len).sum::<usize>() + url.len() <= OTHERS_BYTES
}

/// Objects that the far end knows a near end to hold.
pub(crate) const KNOWN: usize = 4096;
/// Near ends that are told apart.
pub(crate) const STORES: u64 = 64;
/// Requests of browsers that a worker of the near end holds at one time.
pub(crate) const HELD: usize = 1024;
/// Flights of a worker of the near end that are not over. Each may hold [`ENTRIES`] of about 120 bytes.
pub(crate) const OPENED: usize = 1024;
/// Clients' flights are listed in so many values of the board, each with so many flights: all people behind one address are
/// one client.
pub(crate) const LOGS: u64 = 512;
/// Flights listed in one of them.
pub(crate) const FLIGHTS_PER_LOG: usize = 32;
/// Flights that are looked through for one request.
pub(crate) const PAGES_ASKED: usize = 8;
/// Hosts that a client may have written to while a flight lasts, before nothing of it is answered any more.
pub(crate) const WRITTEN: usize = 8;
/// Objects on the shelf.
pub(crate) const SHELF_OBJECTS: usize = 2048;
/// Classes and ids that are remembered of a page, and the longest end of its bytes that is kept for its next ones.
pub(crate) const NAMES: usize = 8192;
pub(crate) const TAG_BYTES: usize = 8 << 10;
/// Plain text of a page that is kept for the rule of a style sheet that goes on in its next bytes.
pub(crate) const RULE_BYTES: usize = 16 << 10;
/// Style sheets are looked through up to this size, unpacked.
pub(crate) const SHEET_BYTES: usize = 1 << 20;
