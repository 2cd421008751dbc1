//! Between the cache and the origin: decides if the cache may have a response.
//!
//! `cache_v2` holds a response that it does not store in memory, at the origin's speed. So the judge cuts a response
//! that the cache would not or must not store, unless it is small. The hop in front then repeats the request past the
//! cache, and the client notices nothing.

use std::time::SystemTime;

use http_semantics::body_fields::weakened;
use http_semantics::cache_control::said_age;
use http_semantics::content_encoding::is_shared;
use http_semantics::{Edit, Fields, Purpose, Unshared, labelled, shareable};

use crate::limits::{BURST_BYTES, PASSED_BYTES, STEADY_BYTES_PER_S, UNKNOWN_BYTES};
use crate::marks;

/// The sender of a request that came through the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// A client. It may read very slowly.
    Client,
    /// One of Longhaul's own filters. It reads at once and holds a bounded response.
    Own,
}

impl Asker {
    /// Returns the value of [`marks::JUDGE`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Own => "own",
        }
    }
}

/// The facts about a request that the judge needs when its response comes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about one request")]
pub struct Trial {
    asker: Asker,
    with_cookie: bool,
    with_authorization: bool,
    is_head: bool,
    /// True if the cache validates a response with a weak tag. Its compressor weakened the tag.
    is_weak: bool,
    path: Vec<u8>,
    /// The content encodings that the origin may use.
    accepted: Vec<u8>,
}

labelled! {
    /// The decision about a response.
    Ruling {
        /// The cache stores the response.
        Stored = "stored";
        /// The stored response is still valid (304).
        Validated = "validated";
        /// Not to be stored, and small, without a body or for Longhaul itself: it passes.
        Passed = "passed";
        /// Not to be stored: the request is repeated past the cache.
        Cut = "cut";
        /// Longer than the cache takes: the request is repeated past the cache.
        TooLong = "too_long";
        /// The worker has given the cache enough for now: the request is repeated past the cache.
        Busy = "busy";
    }
}

/// The treatment of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// The response passes, with these edits.
    Pass {
        /// Edits of the header list.
        edits: Vec<Edit>,
        /// The decision, for the metrics.
        ruling: Ruling,
        /// True if the cache stores the response and its length is unknown. A [`Watch`] must then read the body.
        watch: bool,
    },
    /// A short reply replaces the response.
    Cut(Ruling),
}

impl Trial {
    /// Reads a request behind the cache, and returns edits of it. Returns None for a request that is not judged. Such a
    /// request may be one that is repeated past the cache.
    pub fn of(fields: &Fields<'_>) -> (Option<Self>, Vec<Edit>) {
        let heard = fields.get(marks::ACCEPT).map(|said| if said == b"-" { &b""[..] } else { said });
        let mut edits: Vec<Edit> = Vec::new();
        if let Some(heard) = heard {
            edits.push(Edit::remove(marks::ACCEPT));
            edits.push(match heard {
                b"" => Edit::remove("accept-encoding"),
                said => Edit::Set("accept-encoding", said.to_vec()),
            });
        }
        let asker = match fields.get(marks::JUDGE) {
            Some(b"own") => Asker::Own,
            Some(_) => Asker::Client,
            None => return (None, edits),
        };
        let trial = Self {
            asker,
            with_cookie: fields.has("cookie"),
            with_authorization: fields.has("authorization"),
            is_head: fields.get(":method") == Some(b"HEAD"),
            is_weak: fields.get("if-none-match").is_some_and(|tag| tag.starts_with(b"W/")),
            path: fields.get(":path").unwrap_or_default().to_vec(),
            accepted: heard.or_else(|| fields.get("accept-encoding")).unwrap_or_default().to_vec(),
        };
        // The hop `fetch` sent `no-cache` only to the cache. The origin gets the client's own field.
        let edit = fields.get(marks::ANEW).map(|anew| match anew.strip_prefix(b"=") {
            Some(said) => Edit::Set("cache-control", said.to_vec()),
            None => Edit::remove("cache-control"),
        });
        edits.extend(edit);
        (Some(trial), edits)
    }

    /// Judges the response. `object_bytes` is the longest body that the cache takes.
    pub fn judge(&self, fields: &Fields<'_>, object_bytes: u64, budget: &mut Budget, now: SystemTime) -> Judged {
        let length = length(fields);
        if fields.get(":status") == Some(b"304") {
            return self.validation(fields, now);
        }
        let is_bodiless = self.is_head || matches!(fields.get(":status"), Some(b"204" | b"205")) || length == Some(0);
        let ruling = match self.shareable(fields, now) {
            Err(_) => Ruling::Cut,
            Ok(()) if !is_shared(&self.path, &self.accepted, fields) => Ruling::Cut,
            Ok(()) if length.is_some_and(|length| length > object_bytes) => Ruling::TooLong,
            Ok(()) if !budget.take(length.unwrap_or(UNKNOWN_BYTES), now) => Ruling::Busy,
            Ok(()) => {
                let mut edits = of_origin(fields);
                edits.extend(spelling(fields));
                edits.push(Edit::Set(marks::AGE, said_age(fields).unwrap_or(0).to_string().into_bytes()));
                let watch = length.is_none() && !is_bodiless;
                return Judged::Pass { edits, ruling: Ruling::Stored, watch };
            }
        };
        let is_small = is_bodiless || length.is_some_and(|length| length <= PASSED_BYTES);
        if self.asker == Asker::Client && !is_small {
            return Judged::Cut(ruling);
        }
        let mut edits = of_origin(fields);
        // `cache_v2` stores no response with `Vary`. The hop in front of the cache removes the field again.
        let own_vary: &[u8] = if fields.has("vary") { b"passed" } else { b"vary" };
        if own_vary == b"vary" {
            edits.push(Edit::Set("vary", b"*".to_vec()));
        }
        edits.push(Edit::Set(marks::VERDICT, own_vary.to_vec()));
        Judged::Pass { edits, ruling: Ruling::Passed, watch: false }
    }

    /// Judges a 304, by which the origin confirms a stored response. Its fields replace the stored ones.
    fn validation(&self, fields: &Fields<'_>, now: SystemTime) -> Judged {
        let as_stored: Fields<'_> =
            fields.iter().map(|(name, value)| (name, if name == b":status" { &b"200"[..] } else { value })).collect();
        // The stored fields may state the freshness lifetime.
        if !matches!(self.shareable(&as_stored, now), Ok(()) | Err(Unshared::NotFresh | Unshared::Cookie)) {
            return Judged::Cut(Ruling::Cut);
        }
        let mut edits = of_origin(fields);
        edits.extend(spelling(fields));
        edits.push(Edit::Set(marks::AGE, said_age(fields).unwrap_or(0).to_string().into_bytes()));
        // The origin's tag names its own bytes. A strong one on the compressed bytes would let a client join ranges of both.
        if let Some(tag) = fields.get("etag").filter(|_| self.is_weak) {
            edits.extend(weakened(tag).map(|tag| Edit::Set("etag", tag)));
        }
        Judged::Pass { edits, ruling: Ruling::Validated, watch: false }
    }

    fn shareable(&self, fields: &Fields<'_>, now: SystemTime) -> Result<(), Unshared> {
        let mut asked: Vec<(&[u8], &[u8])> = vec![(b":method", if self.is_head { b"HEAD" } else { b"GET" })];
        asked.extend(self.with_cookie.then_some((&b"cookie"[..], &b""[..])));
        asked.extend(self.with_authorization.then_some((&b"authorization"[..], &b""[..])));
        shareable(Purpose::Cache, &asked.into_iter().collect(), fields, now).map(|_| ())
    }
}

/// Returns edits that remove our own fields, which an origin may have forged.
fn of_origin(fields: &Fields<'_>) -> Vec<Edit> {
    let ours = [marks::VERDICT, marks::AGE, marks::STORED];
    ours.into_iter().filter(|name| fields.has(name)).map(Edit::remove).collect()
}

/// Returns edits that make `cache_v2` read the same as this crate. It compares directives case-sensitively, and reads
/// `Age` only if it is a single number.
fn spelling(fields: &Fields<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    if fields.all("cache-control").any(|value| value.iter().any(u8::is_ascii_uppercase)) {
        let all: Vec<&[u8]> = fields.all("cache-control").collect();
        edits.push(Edit::Set("cache-control", all.join(&b", "[..]).to_ascii_lowercase()));
    }
    if let Some(age) = said_age(fields).filter(|age| fields.get("age") != Some(age.to_string().as_bytes())) {
        edits.push(Edit::Set("age", age.to_string().into_bytes()));
    }
    edits
}

/// Returns the declared length of a body, in bytes.
pub(crate) fn length(fields: &Fields<'_>) -> Option<u64> {
    std::str::from_utf8(fields.get("content-length")?).ok()?.parse().ok()
}

/// The bytes that one worker may give the cache: a token bucket. It bounds the memory that a disk slower than the
/// origins can cost.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    since: Option<SystemTime>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: BURST_BYTES, since: None }
    }
}

impl Budget {
    /// Takes `bytes`. Returns false, and takes nothing, if fewer are left.
    pub fn take(&mut self, bytes: u64, now: SystemTime) -> bool {
        let passed = self.since.and_then(|since| now.duration_since(since).ok()).unwrap_or_default();
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let more = millis.saturating_mul(STEADY_BYTES_PER_S) / 1_000;
        self.left = self.left.saturating_add(more).min(BURST_BYTES);
        self.since = Some(now);
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// A body of unknown length on its way into the cache.
#[derive(Debug, Default)]
pub struct Watch {
    bytes: u64,
}

impl Watch {
    /// Counts a piece of the body. Returns false if the body must be broken off: it is longer than the cache takes, or
    /// than the budget of the worker.
    pub fn piece(&mut self, size: usize, object_bytes: u64, budget: &mut Budget, now: SystemTime) -> bool {
        let size = size as u64;
        let before = self.bytes;
        self.bytes = before.saturating_add(size);
        // The first `UNKNOWN_BYTES` were taken with the headers.
        let more = self.bytes.saturating_sub(UNKNOWN_BYTES.max(before));
        self.bytes <= object_bytes && (more == 0 || budget.take(more, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const OBJECT: u64 = 4 << 20;

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    fn judged(asked: &[(&str, &str)], said: &[(&str, &str)]) -> Judged {
        let trial = Trial::of(&fields(asked)).0.unwrap();
        trial.judge(&fields(said), OBJECT, &mut Budget::default(), SystemTime::UNIX_EPOCH)
    }

    fn ruling(judged: &Judged) -> (Ruling, bool) {
        match judged {
            Judged::Pass { ruling, .. } => (*ruling, true),
            Judged::Cut(ruling) => (*ruling, false),
        }
    }

    const CLIENT: (&str, &str) = (marks::JUDGE, "client");
    const OWN: (&str, &str) = (marks::JUDGE, "own");
    const OK: (&str, &str) = (":status", "200");
    const FRESH: (&str, &str) = ("cache-control", "max-age=60");
    const SMALL: (&str, &str) = ("content-length", "1000");
    const LONG: (&str, &str) = ("content-length", "1000000");

    #[test]
    fn the_cache_gets_what_it_stores_and_small_rest_passes_marked() {
        for (asked, said, expected) in [
            (&[CLIENT][..], &[OK, FRESH, SMALL][..], (Ruling::Stored, true)),
            (&[CLIENT], &[OK, FRESH], (Ruling::Stored, true)),
            (&[CLIENT], &[OK, FRESH, ("content-length", "5000000")], (Ruling::TooLong, false)),
            (&[CLIENT], &[OK, SMALL], (Ruling::Passed, true)),
            (&[CLIENT], &[OK, LONG], (Ruling::Cut, false)),
            (&[CLIENT], &[OK], (Ruling::Cut, false)),
            (&[CLIENT], &[OK, FRESH, LONG, ("set-cookie", "a=b")], (Ruling::Cut, false)),
            (&[CLIENT, ("cookie", "a=b")], &[OK, FRESH, LONG], (Ruling::Cut, false)),
            (&[CLIENT, (":method", "HEAD")], &[OK, LONG], (Ruling::Passed, true)),
            (&[CLIENT], &[(":status", "302"), ("content-length", "0")], (Ruling::Passed, true)),
            (&[CLIENT], &[(":status", "206"), FRESH, LONG], (Ruling::Cut, false)),
            (&[CLIENT], &[(":status", "304")], (Ruling::Validated, true)),
            (&[CLIENT], &[(":status", "304"), ("set-cookie", "a=b")], (Ruling::Cut, false)),
            (&[OWN], &[OK, LONG], (Ruling::Passed, true)),
        ] {
            assert_eq!(ruling(&judged(asked, said)), expected, "{asked:?} {said:?}");
        }
        let Judged::Pass { edits, .. } = judged(&[CLIENT], &[OK, SMALL]) else { unreachable!() };
        assert!(edits.contains(&Edit::Set("vary", b"*".to_vec())), "so that cache_v2 leaves it alone");
    }

    #[test]
    fn a_weak_tag_stays_weak_when_the_origin_validates_it() {
        let tag = |asked: &'static str, said: &'static str| {
            let judged = judged(&[CLIENT, ("if-none-match", asked)], &[(":status", "304"), ("etag", said)]);
            let Judged::Pass { edits, .. } = judged else { unreachable!() };
            edits.into_iter().find_map(|edit| match edit {
                Edit::Set("etag", value) => String::from_utf8(value).ok(),
                _ => None,
            })
        };
        assert_eq!(tag("W/\"1\"", "\"1\"").as_deref(), Some("W/\"1\""));
        assert_eq!(tag("W/\"1\"", "W/\"1\""), None);
        assert_eq!(tag("\"1\"", "\"1\""), None);
    }

    #[test]
    fn the_origin_gets_the_clients_cache_control_and_not_the_filters() {
        let edits = |anew: &'static str| {
            let asked = [CLIENT, ("cache-control", "no-cache"), (marks::ANEW, anew)];
            Trial::of(&fields(&asked)).1
        };
        assert_eq!(edits("1"), [Edit::remove("cache-control")]);
        assert_eq!(edits("=max-stale=5"), [Edit::Set("cache-control", b"max-stale=5".to_vec())]);
    }

    #[test]
    fn the_origin_gets_the_clients_accept_encoding_also_past_the_cache() {
        let edits = |said: &'static str| {
            let asked = [("accept-encoding", "gzip"), (marks::ACCEPT, said)];
            [Trial::of(&fields(&asked)).1, Trial::of(&fields(&[&asked[..], &[CLIENT]].concat())).1]
        };
        let marked = || Edit::remove(marks::ACCEPT);
        let identity = vec![marked(), Edit::Set("accept-encoding", b"identity".to_vec())];
        assert_eq!(edits("identity"), [identity.clone(), identity]);
        let none = vec![marked(), Edit::remove("accept-encoding")];
        assert_eq!(edits("-"), [none.clone(), none]);
        assert_eq!(Trial::of(&fields(&[CLIENT, ("accept-encoding", "gzip")])).1, []);
    }

    #[test]
    fn a_labelled_file_stays_out_of_the_cache_and_text_does_not() {
        const GZIP: (&str, &str) = ("content-encoding", "gzip");
        const TEXT: (&str, &str) = ("content-type", "text/plain");
        const TAR: (&str, &str) = ("content-type", "application/x-tar");
        let accepts = ("accept-encoding", "gzip");
        for (asked, said, expected) in [
            (&[accepts, (":path", "/a.txt")][..], &[TEXT, GZIP][..], Ruling::Stored),
            (&[accepts, (":path", "/a.tar")], &[TAR], Ruling::Stored),
            (&[accepts, (":path", "/a.tar")], &[TAR, GZIP], Ruling::Passed),
            (&[accepts, (":path", "/a.txt.gz")], &[TEXT, GZIP], Ruling::Passed),
            (&[accepts, (":path", "/a.txt")], &[TEXT, ("content-encoding", "br")], Ruling::Passed),
            (&[accepts, (marks::ACCEPT, "-"), (":path", "/a.txt")], &[TEXT, GZIP], Ruling::Passed),
            (&[accepts, (marks::ACCEPT, "-"), (":path", "/a.txt")], &[TEXT], Ruling::Stored),
        ] {
            let judged = judged(&[&[CLIENT], asked].concat(), &[&[OK, FRESH, SMALL], said].concat());
            assert_eq!(ruling(&judged).0, expected, "{asked:?} {said:?}");
        }
    }

    #[test]
    fn the_cache_and_this_crate_read_the_same() {
        let said = [OK, ("cache-control", "Public"), ("cache-control", "Max-Age=\"60\""), ("age", "5, 7"), SMALL];
        let Judged::Pass { edits, .. } = judged(&[CLIENT], &said) else { unreachable!() };
        assert!(edits.contains(&Edit::Set("cache-control", b"public, max-age=\"60\"".to_vec())), "{edits:?}");
        assert!(edits.contains(&Edit::Set("age", b"5".to_vec())), "{edits:?}");
        assert!(edits.contains(&Edit::Set(marks::AGE, b"5".to_vec())), "{edits:?}");
        let forged = [OK, FRESH, SMALL, (marks::VERDICT, "cut"), (marks::STORED, "1")];
        let Judged::Pass { edits, .. } = judged(&[CLIENT], &forged) else { unreachable!() };
        assert!(edits.contains(&Edit::remove(marks::VERDICT)) && edits.contains(&Edit::remove(marks::STORED)));
    }

    #[test]
    fn a_worker_gives_the_cache_so_much_and_no_more() {
        let (mut budget, start) = (Budget::default(), SystemTime::UNIX_EPOCH);
        assert!(budget.take(BURST_BYTES, start));
        assert!(!budget.take(1, start));
        assert!(budget.take(STEADY_BYTES_PER_S / 2, start + Duration::from_millis(500)));
        assert!(!budget.take(1_000, start), "a clock that steps back gives nothing");
        let mut watch = Watch::default();
        let mut budget = Budget::default();
        assert!(watch.piece(64 << 10, OBJECT, &mut budget, start));
        assert!(!watch.piece(4 << 20, OBJECT, &mut budget, start), "longer than the cache takes");
    }
}
