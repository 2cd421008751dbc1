//! Seeds of the targets.

/// Returns a request and a response each, with an empty line between them. The cache stores every one of the responses.
pub(crate) fn rules() -> Vec<Vec<u8>> {
    vec![
        b":method:GET\n:path:/a.css\ncookie:a=b\nif-none-match:W/\"x\", \"y\"\n\n:status:200\netag:\"y\"\n\
          cache-control:public, max-age=60, stale-while-revalidate=9"
            .to_vec(),
        b":path:/b?c\naccept-encoding:br, gzip;q=0.5\ncache-control:max-stale=5, min-fresh=3\n\n:status:404\n\
          vary:Accept-Encoding, origin\nexpires:Fri, 15 Jan 2027 08:01:00 GMT\ndate:Fri, 15 Jan 2027 08:00:00 GMT\nage:5"
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
    b"\nexpires:",
    b"Fri, 15 Jan 2027 08:00:00 GMT",
    b"\nlocation:http://",
];
