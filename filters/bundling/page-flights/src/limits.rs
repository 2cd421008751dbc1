//! All bounds, by name. Bytes from others decide how much memory and work they need; these numbers decide how much they
//! get.

/// Objects of one flight. The median page of 2025 has 73 objects.
pub(crate) const ENTRIES: usize = 192;
/// The longest URL that is bundled, in bytes.
pub(crate) const URL_BYTES: usize = 2048;
/// The largest object that is bundled, in bytes. A browser can use a larger one while it streams, if it requests it
/// itself.
pub(crate) const OBJECT_BYTES: usize = 1 << 20;
/// The largest sum of an object's header names and values as they are encoded, in bytes.
pub(crate) const HEAD_BYTES: usize = 8 << 10;
/// The most bytes that a compressed parcel is decompressed to.
pub(crate) const PARCEL_BYTES: usize = 8 << 20;
/// The most bytes that one object in br is decompressed to.
pub(crate) const UNPACKED_BYTES: usize = 16 << 20;
/// Objects that the ground fetches at one time for one page.
pub(crate) const FETCHES: usize = 24;
/// The most bytes of a page that a proxy is expected to pass on at once. Its cache reads 256 KiB, and URL rewriting may
/// add some.
pub(crate) const CHUNK_BYTES: usize = 384 << 10;
/// Flights that one worker of the ground carries at one time, and past flights that it remembers for their reports.
pub(crate) const FLIGHTS: usize = 256;
/// The longest duration of a flight in milliseconds. The remote keeps its records as long.
pub(crate) const FLIGHT_MS: u64 = 60_000;
/// Values of the board that hold lessons. With [`PAGES_PER_LESSONS`] they have room for 2048 pages of at most 10 KiB.
pub(crate) const LESSONS: u64 = 512;
/// Pages in one of these values.
pub(crate) const PAGES_PER_LESSONS: usize = 4;
/// URLs that are reported and learnt for one page at most. Its markup does not name them, but browsers request them.
pub(crate) const OTHERS: usize = 16;
/// The sum of the lengths of these URLs, in bytes.
pub(crate) const OTHERS_BYTES: usize = 2048;

/// Returns true if `url` has room beside `others` within [`OTHERS`] and [`OTHERS_BYTES`].
pub(crate) fn have_room<'o>(others: impl ExactSizeIterator<Item = &'o str>, url: &str) -> bool {
    others.len() < OTHERS && others.map(str::len).sum::<usize>() + url.len() <= OTHERS_BYTES
}

/// Objects of one remote that the ground remembers.
pub(crate) const KNOWN: usize = 4096;
/// The number of remotes whose objects a ground remembers.
pub const STORES: usize = 1024;
/// The most bytes that a ground needs to remember them, for all workers together: 33 MiB.
pub const KNOWN_BYTES: usize = STORES * (8 * (KNOWN + 1) + size_of::<[u8; 10]>());
/// Browsers' requests that one worker of the remote holds at one time.
pub(crate) const HELD: usize = 1024;
/// Flights of one worker of the remote that have not ended. Each may hold [`ENTRIES`] of about 120 bytes.
pub(crate) const OPENED: usize = 1024;
/// Values of the board that list clients' flights.
pub(crate) const LOGS: u64 = 512;
/// Flights that one of these values lists. All people behind one address are one client.
pub(crate) const FLIGHTS_PER_LOG: usize = 32;
/// Flights that are searched for one request.
pub(crate) const PAGES_ASKED: usize = 8;
/// Hosts of a client's unsafe requests that are remembered for a flight. After one more, the flight serves nothing.
pub(crate) const WRITTEN: usize = 8;
/// Objects on the shelf of the remote.
pub(crate) const SHELF_OBJECTS: usize = 2048;
/// Classes and ids that are remembered of a page.
pub(crate) const NAMES: usize = 8192;
/// The largest unfinished tag that is kept until the next bytes of the page, in bytes.
pub(crate) const TAG_BYTES: usize = 8 << 10;
/// Hosts of one page that the resolver learns. It sends a remote no more for one name.
pub(crate) const HOSTS: usize = 32;
/// The longest name in DNS, in its dotted form (RFC 1035, 2.3.4).
pub(crate) const HOST_BYTES: usize = 253;
/// The longest label of such a name.
pub(crate) const LABEL_BYTES: usize = 63;
/// The time after which the resolver counts as not reached, in milliseconds. It is on the same machine.
pub(crate) const TELL_MS: u64 = 2000;
/// Bytes of a page's plain text that are kept for a CSS rule which continues in the page's next bytes.
pub(crate) const RULE_BYTES: usize = 16 << 10;
/// Bytes of a style sheet, decompressed, that are searched for URLs.
pub(crate) const SHEET_BYTES: usize = 1 << 20;
