//! In front of a cache: learns from each response, and removes the fields that its way through the cache left behind.

use std::time::SystemTime;

use http_semantics::body_fields::{Change, gone, weakened};
use http_semantics::content_encoding::{codings, is_gzip, is_removable, is_shared};
use http_semantics::{Edit, Fields, Freshness, Purpose, Unshared, labelled, shareable};
use image_variants::key;
use shared_board::Board;

use crate::judge::{Asker, length};
use crate::marks;
use crate::request::{self, Asked, Reason, Way};
use crate::table::{Known, Table, Url};

/// A fact to learn once a body is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    url: Url,
    fresh: Freshness,
    is_stored: bool,
    bytes: u64,
    limit: u64,
}

labelled! {
    /// The lesson of a response in the outer hop.
    Taught {
        /// The next response may be stored.
        Storable = "storable";
        /// The response is stored.
        Stored = "stored";
        /// An entry of the table is no longer true.
        Forgotten = "forgotten";
        /// A request that may have changed the resource succeeded (RFC 9111 section 4.4).
        Invalidated = "invalidated";
        /// The cache evicted a response, and the next one is not for the cache. The client repeats its request.
        Redirected = "redirected";
    }
}

/// The result of the headers of a response.
#[derive(Debug, Default)]
pub struct Learnt {
    /// Edits of the header list.
    pub edits: Vec<Edit>,
    /// The lesson that is complete at the end of the body.
    pub lesson: Option<Lesson>,
    /// The lesson that is complete already.
    pub taught: Option<Taught>,
}

impl Lesson {
    /// Counts a piece of the body, in bytes.
    pub fn piece(&mut self, size: usize) {
        self.bytes = self.bytes.saturating_add(size as u64);
    }

    /// Writes the lesson to `table` at the end of a complete body. Forgets the URL if the body was longer than the
    /// limit.
    pub fn end<B: Board>(self, table: &Table<B>, now: SystemTime) -> Taught {
        if self.bytes > self.limit {
            table.forget(&self.url);
            return Taught::Forgotten;
        }
        if self.is_stored {
            table.held(&self.url, self.fresh.public, self.fresh.left, unix(now));
            return Taught::Stored;
        }
        table.storable(&self.url, self.fresh.public);
        Taught::Storable
    }
}

/// Returns Unix time, in seconds.
pub fn unix(now: SystemTime) -> u32 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Learns from a response to a client's request, in the outer hop. `object_bytes` is the longest body that the cache
/// takes.
pub fn learn<B: Board>(
    asked: &Asked,
    fields: &Fields<'_>,
    object_bytes: u64,
    table: &Table<B>,
    now: SystemTime,
) -> Learnt {
    let mut learnt = Learnt { edits: tidy(fields), ..Learnt::default() };
    learnt.edits.extend(vary(asked, fields));
    let Some(url) = &asked.url else { return learnt };
    if asked.unsafe_method {
        learnt.taught = invalidate(url, fields, table);
        return learnt;
    }
    let way = asked.reason.way();
    let is_stored = fields.has(marks::STORED);
    let is_cached = is_stored || (way == Way::Hit && !fields.has(marks::VERDICT));
    let form = if is_cached { form(asked, &url.path, fields) } else { Form::Fits };
    if form == Form::Unpacked {
        learnt.edits.extend(unpacked(asked, fields));
    }
    if form == Form::Unfit {
        learnt.edits.extend(again(url));
        learnt.taught = Some(Taught::Redirected);
        table.forget(url);
        return learnt;
    }
    if way == Way::Hit {
        match fields.get(marks::VERDICT) {
            None => return learnt,
            Some(b"cut") => {
                learnt.edits.extend(again(url));
                learnt.taught = Some(Taught::Redirected);
            }
            Some(_) => learnt.taught = Some(Taught::Forgotten),
        }
        table.forget(url);
        return learnt;
    }
    if !asked.teaches {
        return learnt;
    }
    let request: Fields<'_> = asked.with_cookie.then_some((&b"cookie"[..], &b""[..])).into_iter().collect();
    let is_bounded = length(fields).is_none_or(|length| length <= object_bytes);
    let is_stored = way != Way::Past && is_stored;
    // The judge has decided about a stored response. It knows what the origin was asked.
    let accepted: &[u8] = if asked.takes_gzip { b"gzip" } else { b"" };
    let is_shared = is_stored || is_shared(&url.path, accepted, fields);
    match shareable(Purpose::Cache, &request, fields, now) {
        Ok(fresh) if is_bounded && is_shared => {
            learnt.lesson = Some(Lesson { url: url.clone(), fresh, is_stored, bytes: 0, limit: object_bytes });
        }
        // Clients without a cookie may still share the response.
        Err(Unshared::Cookie) => {}
        _ if asked.reason == Reason::Unknown => {}
        _ => {
            table.forget(url);
            learnt.taught = Some(Taught::Forgotten);
        }
    }
    learnt
}

/// The form of a response from the cache, as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The client can read it as it is.
    Fits,
    /// The client does not accept gzip. The outer hop decompresses the body.
    Unpacked,
    /// Likewise, but the file is no text. An older release stored it.
    Unfit,
}

fn form(asked: &Asked, path: &[u8], fields: &Fields<'_>) -> Form {
    if asked.takes_gzip || !is_gzip(fields) {
        Form::Fits
    } else if is_removable(path, fields) {
        Form::Unpacked
    } else {
        Form::Unfit
    }
}

/// Returns the edits that describe the decompressed body. Envoy changes a body with its length and its encoding. A response
/// to HEAD has none, so the fields go here.
fn unpacked(asked: &Asked, fields: &Fields<'_>) -> Vec<Edit> {
    let is_head = !asked.teaches;
    let left_to_envoy = |name: &&str| !is_head && matches!(*name, "content-length" | "content-encoding");
    let gone = gone(Change::Decoding).filter(|name| fields.has(name) && !left_to_envoy(name)).map(Edit::remove);
    let tag = fields.get("etag").and_then(weakened).map(|tag| Edit::Set("etag", tag));
    gone.chain(tag).chain([Edit::Set(marks::UNPACK, b"gzip".to_vec())]).collect()
}

/// The sender of a request through the hop `fetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// A client, whose request the outer hop sent there.
    Client,
    /// One of Longhaul's own filters. The URL is there for a GET without `Range`.
    Own(Option<Url>),
}

impl Fetched {
    /// Classifies a request, and returns edits of its header list. Records in `table` that one of Longhaul's own
    /// filters fetches a URL, unless its response is stored and fresh. With `images`, the request of a filter gets the
    /// variant that its client would get.
    pub fn of<B: Board>(fields: &Fields<'_>, images: bool, table: &Table<B>, now_s: u32) -> (Self, Vec<Edit>) {
        let anew = Edit::Set("cache-control", b"no-cache".to_vec());
        let judged = |asker: Asker| Edit::Set(marks::JUDGE, asker.as_str().into());
        if fields.get(marks::WAY) == Some(b"fill") {
            let anew = fields.has(marks::ANEW).then_some(anew);
            return (Self::Client, [judged(Asker::Client)].into_iter().chain(anew).collect());
        }
        let mut edits = vec![judged(Asker::Own)];
        let (url, variant) = request::target(fields, images);
        let url = url.filter(|_| fields.get(":method") == Some(b"GET") && !fields.has("range"));
        edits.extend(url.iter().filter(|_| variant).flat_map(request::as_variant));
        let is_held = url.as_ref().is_some_and(|url| matches!(table.look(url, now_s), Some(Known::Held { .. })));
        if let Some(url) = url.as_ref().filter(|_| !is_held) {
            table.coming(url, now_s);
            // The cache may hold a response from before a restart, which needs validation.
            if !fields.has("cache-control") {
                edits.extend([anew, Edit::Set(marks::ANEW, b"1".to_vec())]);
            }
        }
        (Self::Own(url), edits)
    }
}

/// Learns from a response in the hop `fetch`, and returns edits of its header list.
pub fn learn_fetched<B: Board>(fetched: &Fetched, fields: &Fields<'_>, table: &Table<B>, now: SystemTime) -> Vec<Edit> {
    let verdict = fields.get(marks::VERDICT);
    match fetched {
        // The outer hop sees the verdict and repeats the request.
        Fetched::Client if verdict == Some(b"cut") => return Vec::new(),
        Fetched::Own(Some(url)) => match shareable(Purpose::Cache, &Fields::default(), &aged(fields), now) {
            // The cache is writing the response. Requests for it now join.
            Ok(fresh) if verdict.is_none() => table.held(url, fresh.public, fresh.left, unix(now)),
            _ => table.forget(url),
        },
        Fetched::Client | Fetched::Own(None) => {}
    }
    let mut edits = tidy(fields);
    if verdict.is_none() && *fetched == Fetched::Client {
        edits.push(Edit::Set(marks::STORED, b"1".to_vec()));
    }
    edits
}

/// Returns the header list with the origin's `Age`, also where the cache dropped it.
fn aged<'a>(fields: &Fields<'a>) -> Fields<'a> {
    let age = fields.get(marks::AGE).filter(|_| !fields.has("age")).map(|age| (&b"age"[..], age));
    fields.iter().chain(age).collect()
}

/// Returns edits that remove our own fields and the judge's `Vary`, and restore the origin's `Age`.
fn tidy(fields: &Fields<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    if fields.get(marks::VERDICT) == Some(b"vary") {
        edits.push(Edit::remove("vary"));
    }
    if let Some(age) = fields.get(marks::AGE).filter(|age| *age != b"0" && !fields.has("age")) {
        edits.push(Edit::Set("age", age.to_vec()));
    }
    let ours = [marks::VERDICT, marks::AGE, marks::STORED];
    edits.extend(ours.into_iter().filter(|name| fields.has(name)).map(Edit::remove));
    edits
}

/// Turns the judge's short reply into a 307 (RFC 9110 section 15.4.8) to the same URL. On the way `hit` no hop repeats
/// a request, and the stored response was evicted, so the client must request it again. The caller forgets the URL, and
/// the next request takes another way.
fn again(url: &Url) -> [Edit; 3] {
    let path = key::origin(&url.path).unwrap_or(&url.path);
    let location = [&url.scheme, &b"://"[..], &url.authority, path].concat();
    [
        Edit::Set(":status", b"307".to_vec()),
        Edit::Set("location", location),
        Edit::Set("cache-control", b"no-store".to_vec()),
    ]
}

/// Handles the response to a request with an unsafe method. If it succeeded, forgets its URL, and the URLs on the same
/// host that the response names (RFC 9111 section 4.4).
fn invalidate<B: Board>(url: &Url, fields: &Fields<'_>, table: &Table<B>) -> Option<Taught> {
    if !matches!(fields.get(":status").and_then(<[u8]>::first), Some(b'2' | b'3')) {
        return None;
    }
    let named = ["location", "content-location"].into_iter().filter_map(|name| path_on(url, fields.get(name)?));
    for path in [url.path.clone()].into_iter().chain(named) {
        if let Some(path) = key::of(&path) {
            table.forget(&Url { path, ..url.clone() });
        }
        table.forget(&Url { path, ..url.clone() });
    }
    Some(Taught::Invalidated)
}

/// Returns the names that caches of clients and of others need in `Vary`. None if the field is right.
///
/// - `Accept` for an image that may be replaced by a variant. Our own cache has variants under paths of their own.
/// - `Accept-Encoding` for an encoded response. Envoy has removed a `Vary` with that name alone behind the cache, because
///   `cache_v2` stores no response that has a `Vary`.
fn vary(asked: &Asked, fields: &Fields<'_>) -> Option<Edit> {
    // `tidy` takes away the one that the judge added.
    let judges = fields.get(marks::VERDICT) == Some(b"vary");
    let is_encoded = codings(fields).next().is_some();
    if !asked.variant && !is_encoded {
        return None;
    }
    let mut names: Vec<&[u8]> = fields.items("vary").filter(|_| !judges).collect();
    let before = names.len();
    for (name, is_needed) in [(&b"Accept-Encoding"[..], is_encoded), (b"Accept", asked.variant)] {
        if is_needed && !names.iter().any(|said| *said == b"*" || said.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    (names.len() > before).then(|| Edit::Set("vary", names.join(&b", "[..])))
}

/// Returns the path of a reference, if it has the scheme and the host of `url`.
fn path_on(url: &Url, reference: &[u8]) -> Option<Vec<u8>> {
    let origin = [&url.scheme, &b"://"[..], &url.authority].concat();
    let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
    let path = match reference.strip_prefix(origin.as_slice()) {
        Some([]) => b"/",
        Some(path) => path,
        None => reference,
    };
    (path.starts_with(b"/") && !path.starts_with(b"//")).then(|| path.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_board::Memory;

    fn url(path: &str) -> Url {
        Url { scheme: b"http".to_vec(), authority: b"a.test".to_vec(), path: path.as_bytes().to_vec() }
    }

    fn asked(path: &str, reason: Reason, variant: bool) -> Asked {
        let unsafe_method = reason == Reason::Method;
        let url = Some(url(path));
        let teaches = !unsafe_method;
        Asked { reason, url, teaches, unsafe_method, with_cookie: false, variant, takes_gzip: true }
    }

    fn learnt(asked: &Asked, list: &[(&str, &str)], board: &Memory) -> Vec<Edit> {
        let fields = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        learn(asked, &fields, 1000, &Table::new(board, [1; 16]), SystemTime::UNIX_EPOCH).edits
    }

    #[test]
    fn a_response_for_a_client_that_accepts_webp_varies_by_accept() {
        let board = Memory::default();
        let vary = |value: &str| Edit::Set("vary", value.as_bytes().to_vec());
        for (list, expected) in [
            (&[(":status", "200")][..], "Accept"),
            (&[(":status", "200"), ("vary", "Accept-Encoding")], "Accept-Encoding, Accept"),
            (&[(":status", "200"), ("vary", "x"), (marks::VERDICT, "vary")], "Accept"),
        ] {
            let edits = learnt(&asked("/.lh-webp/a.jpg", Reason::Unknown, true), list, &board);
            let last = edits.iter().rfind(|edit| edit.name() == "vary");
            assert_eq!(last, Some(&vary(expected)), "{list:?}");
            assert!(!learnt(&asked("/a.jpg", Reason::Unknown, false), list, &board).contains(&vary(expected)));
        }
    }

    #[test]
    fn a_filter_gets_the_variant_of_its_client_and_fetches_nothing_else_so() {
        let board = Memory::default();
        let table = Table::new(&board, [1; 16]);
        let fetched = |images, accept: &str| {
            let base = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/a.jpg")];
            let list: Vec<_> = base.iter().copied().chain([("accept", accept)]).collect();
            let fields = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let (fetched, edits) = Fetched::of(&fields, images, &table, 1);
            let Fetched::Own(Some(url)) = fetched else { panic!("{fetched:?}") };
            let path = edits.iter().any(|edit| *edit == Edit::Set(":path", url.path.clone()));
            (String::from_utf8(url.path).unwrap(), path, edits.contains(&Edit::Set(key::MARK, b"/a.jpg".to_vec())))
        };
        assert_eq!(fetched(true, "image/webp,*/*;q=0.8"), ("/.lh-webp/a.jpg".to_owned(), true, true));
        assert_eq!(fetched(true, "image/*,*/*;q=0.8"), ("/a.jpg".to_owned(), false, false));
        assert_eq!(fetched(false, "image/webp,*/*;q=0.8"), ("/a.jpg".to_owned(), false, false));
    }

    #[test]
    fn a_client_without_gzip_gets_stored_text_decompressed_and_described_so() {
        let list = [
            (":status", "200"),
            ("content-type", "text/css"),
            ("content-encoding", "gzip"),
            ("content-length", "9"),
            ("etag", "\"x\""),
            ("accept-ranges", "bytes"),
            ("repr-digest", "sha-256=:x:"),
            ("unencoded-digest", "sha-256=:x:"),
        ];
        let held = |takes_gzip, teaches| Asked { teaches, takes_gzip, ..asked("/a.css", Reason::Held, false) };
        let of = |asked: &Asked| learnt(asked, &list, &Memory::default());
        let vary = Edit::Set("vary", b"Accept-Encoding".to_vec());
        assert_eq!(of(&held(true, true)), std::slice::from_ref(&vary));
        let (removed, tag) = (Edit::remove, Edit::Set("etag", b"W/\"x\"".to_vec()));
        let unpack = Edit::Set(marks::UNPACK, b"gzip".to_vec());
        let untrue = [removed("accept-ranges"), removed("repr-digest"), tag, unpack];
        assert_eq!(of(&held(false, true)), [&[vary.clone()][..], &untrue].concat());
        let of_head = [vary.clone(), removed("content-length"), removed("content-encoding")];
        assert_eq!(of(&held(false, false)), [&of_head[..], &untrue].concat());
        // A fill is a response of the cache if it came through it, and else one of the origin.
        let fill = Asked { takes_gzip: false, ..asked("/a.css", Reason::Storable, false) };
        assert_eq!(of(&fill), [vary]);
        let stored: Vec<_> = list.into_iter().chain([(marks::STORED, "1")]).collect();
        assert!(learnt(&fill, &stored, &Memory::default()).contains(&Edit::Set(marks::UNPACK, b"gzip".to_vec())));
    }

    #[test]
    fn a_client_without_gzip_never_gets_a_labelled_file_from_the_cache() {
        let list = [
            (":status", "200"),
            ("content-type", "application/x-tar"),
            ("content-encoding", "gzip"),
            ("etag", "\"x\""),
        ];
        let of = |takes_gzip| {
            let board = Memory::default();
            let table = Table::new(&board, [1; 16]);
            table.held(&url("/a.tar"), false, 60, 0);
            let asked = Asked { takes_gzip, ..asked("/a.tar", Reason::Held, false) };
            (learnt(&asked, &list, &board), table.look(&url("/a.tar"), 0))
        };
        let (edits, known) = of(false);
        assert!(edits.contains(&Edit::Set(":status", b"307".to_vec())) && known.is_none(), "{edits:?}");
        let (edits, known) = of(true);
        assert!(!edits.contains(&Edit::Set(":status", b"307".to_vec())));
        assert_eq!(known, Some(Known::Held { public: false }));
    }

    #[test]
    fn an_encoded_response_varies_by_accept_encoding_and_a_plain_one_does_not() {
        const GZIP: (&str, &str) = ("content-encoding", "gzip");
        for (list, expected) in [
            (&[GZIP][..], Some("Accept-Encoding")),
            (&[GZIP, ("vary", "Origin")], Some("Origin, Accept-Encoding")),
            (&[GZIP, ("vary", "*"), (marks::VERDICT, "vary")], Some("Accept-Encoding")),
            (&[GZIP, ("vary", "*")], None),
            (&[GZIP, ("vary", "Origin,accept-encoding")], None),
            (&[], None),
            (&[("content-encoding", "identity")], None),
        ] {
            let edits = learnt(&asked("/a.css", Reason::Unknown, false), list, &Memory::default());
            let found = edits.into_iter().find_map(|edit| match edit {
                Edit::Set("vary", value) => String::from_utf8(value).ok(),
                _ => None,
            });
            assert_eq!(found.as_deref(), expected, "{list:?}");
        }
    }

    #[test]
    fn a_labelled_file_teaches_nothing_and_text_does() {
        for (takes_gzip, kind, expected) in [(true, "text/css", true), (false, "text/css", false), (true, "a/b", false)]
        {
            let list = [
                (":status", "200"),
                ("cache-control", "max-age=60"),
                ("content-type", kind),
                ("content-encoding", "gzip"),
            ];
            let fields = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let board = Memory::default();
            let asked = Asked { takes_gzip, ..asked("/a", Reason::Unknown, false) };
            let learnt = learn(&asked, &fields, 1000, &Table::new(&board, [1; 16]), SystemTime::UNIX_EPOCH);
            assert_eq!(learnt.lesson.is_some(), expected, "{takes_gzip} {kind}");
        }
    }

    #[test]
    fn a_client_is_never_sent_to_the_path_of_a_variant() {
        let cut = [(":status", "200"), (marks::VERDICT, "cut")];
        let edits = learnt(&asked("/.lh-webp/a.jpg?b", Reason::Held, true), &cut, &Memory::default());
        assert!(edits.contains(&Edit::Set("location", b"http://a.test/a.jpg?b".to_vec())), "{edits:?}");
    }

    #[test]
    fn a_change_invalidates_the_variants_of_its_urls_too() {
        let board = Memory::default();
        let table = Table::new(&board, [1; 16]);
        let paths = ["/a.jpg", "/.lh-webp/a.jpg", "/b.jpg", "/.lh-webp/b.jpg", "/.lh-webp/c.jpg"];
        for path in paths {
            table.storable(&url(path), false);
        }
        learnt(&asked("/a.jpg", Reason::Method, false), &[(":status", "204"), ("location", "/b.jpg")], &board);
        let known = paths.map(|path| table.look(&url(path), 0).is_some());
        assert_eq!(known, [false, false, false, false, true]);
    }
}
