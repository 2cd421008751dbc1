//! Two ends that have seen exchanges, and their parts.

use std::rc::Rc;

use header_codec::{Block, Dictionary, FieldList, Ground, Pending, Remote};

pub(crate) fn dictionary() -> Rc<Dictionary> {
    thread_local! {
        static DICTIONARY: Rc<Dictionary> = Rc::new(Dictionary::first().expect("the first dictionary is one"));
    }
    DICTIONARY.with(Rc::clone)
}

pub(crate) fn block(fields: &FieldList) -> Block {
    Block::from_fields(fields.iter().map(|(name, value)| (&**name, &**value))).expect("it is within the limits")
}

/// Returns a request of the client of [`History`].
pub(crate) fn request(path: &str) -> FieldList {
    let fields = [
        (":authority", "www.example.org"),
        (":path", path),
        (":method", "GET"),
        (":scheme", "http"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
        ("cookie", "session=0123456789abcdef; theme=dark"),
        ("referer", "http://www.example.org/"),
    ];
    fields.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).to_vec()
}

/// Two ends with a few past exchanges.
pub(crate) struct History {
    pub(crate) remote: Remote,
    pub(crate) ground: Ground,
}

impl History {
    pub(crate) fn new() -> Self {
        let mut history = Self { remote: Remote::new(dictionary(), 7, 4), ground: Ground::new(dictionary(), 4) };
        let fields = |fields: &[(&str, &str)]| -> FieldList {
            fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
        };
        for number in 0..4 {
            let (packed, pending) = history.pack(&format!("/images/{number}.jpg"));
            let response = fields(&[
                (":status", "200"),
                ("date", "Sat, 14 Nov 2026 09:12:41 GMT"),
                ("set-cookie", "session=0123456789abcdef; path=/"),
                ("etag", &format!("\"{number}-abc\"")),
            ]);
            let answering = history.ground.unpack(b"pipe", &packed).expect("it was compressed for this ground");
            let answer = history.ground.pack(answering, block(&response)).expect("it is within the limits");
            history.remote.unpack(pending, b"pipe", &answer).expect("it was compressed for this remote");
        }
        history
    }

    pub(crate) fn pack(&mut self, path: &str) -> (Vec<u8>, Pending) {
        let packed = self.remote.pack(b"192.0.2.1", Some(b"pipe"), Rc::new(block(&request(path))));
        packed.expect("it is within the limits")
    }
}
