//! Seeds of the targets.

use object_rules::Life;
use object_store::{Head, Kind, Placed, encode};

/// Returns the heads of a response, of a response without fields, of one in blocks, and of a marker.
pub(crate) fn head() -> Vec<Vec<u8>> {
    let life =
        Life { received_s: 1_800_000_000, lifetime_s: 60, stale_if_error_s: u64::MAX, public: true, ..Life::default() };
    let field = |name: &str, value: &str| (name.into(), value.into());
    let fields =
        vec![field("content-type", "text/css"), field("etag", "\"a\""), field("vary", "accept-encoding, origin")];
    let vary: [Vec<u8>; 2] = [b"accept-encoding".to_vec(), b"origin".to_vec()];
    let url = b"https://a.example/b?c";
    let response =
        Head { kind: Kind::Object, url: url.to_vec(), status: 200, fields, life, vary: vary.to_vec(), length: 9 };
    let empty = Head { fields: Vec::new(), vary: Vec::new(), status: 404, ..response.clone() };
    let sliced = Head { kind: Kind::Slices, vary: Vec::new(), length: (3 << 20) + 9, ..response.clone() };
    let heads = [response, empty, sliced, Head::varies(url, &vary)];
    let placed = heads.into_iter().map(|head| Placed { head, body_at: 512, stamp: 7 });
    placed.map(|placed| encode(&placed).unwrap_or_default()).collect()
}

/// Returns a request and a response each, with an empty line between them. The cache stores every one of the responses.
pub(crate) fn rules() -> Vec<Vec<u8>> {
    vec![
        b":method:GET\n:path:/a.css\ncookie:a=b\nif-none-match:W/\"x\", \"y\"\n\n:status:200\netag:\"y\"\n\
          cache-control:public, max-age=60, stale-while-revalidate=9"
            .to_vec(),
        b":path:/b?c\naccept-encoding:br, gzip;q=0.5\ncache-control:max-stale=5, min-fresh=3\n\n:status:404\n\
          vary:Accept-Encoding, origin\nexpires:Fri, 15 Jan 2027 08:01:00 GMT\ndate:Fri, 15 Jan 2027 08:00:00 GMT\nage:5"
            .to_vec(),
        b":path:/g\nrange:bytes=0-1048575\n\n:status:206\netag:\"z\"\ncache-control:public, max-age=60\n\
          content-range:bytes 0-1048575/5242881\ncontent-digest:x\nvary:accept-encoding"
            .to_vec(),
        b":path:/d\nif-range:\"z\"\nx-range:bytes=0-4, 9-, -2\n\n:status:200\netag:\"z\"\n\
          cache-control:no-store, must-understand, s-maxage=7\nconnection:close, x\nx:y"
            .to_vec(),
        b":method:GET\n:scheme:https\n:authority:a.example:443\n:path:/e\n\n:status:303\ncache-control:max-age=\"9\"\n\
          location:https://a.example/../f?g#h\nlast-modified:Fri, 15 Jan 2027 07:00:00 GMT"
            .to_vec(),
    ]
}

/// Byte strings that matter to a target but rarely arise at random. cargo-fuzz inserts them into inputs.
pub(crate) const TOKENS: &[&[u8]] = &[
    b"\ncache-control:",
    b"no-cache",
    b"no-store",
    b"private",
    b"public",
    b"max-age=",
    b"s-maxage=",
    b"must-revalidate",
    b"stale-if-error=",
    b"\nvary:",
    b"\netag:W/\"",
    b"\nset-cookie:",
    b"\nrange:bytes=",
    b"\nif-range:",
    b"\ncontent-range:bytes 0-",
    b"\naccept-ranges:bytes",
    b"\nexpires:",
    b"Fri, 15 Jan 2027 08:00:00 GMT",
    b"\nlocation:http://",
];
