//! Encodes made pages against made bases, flushed in pieces, and counts the pages that break the encoder.
//!
//!     made_pages COUNT [SEED]
//!
//! Prints `PAGES pages, PANICS panics, WRONG wrong`. A page is wrong if its receiver gets another page or none. COUNT 0 goes
//! on for ever and prints a line for each million pages. The pages are short, because the encoder's edge cases are where a
//! base ends and its page begins: form tokens that grow, words of two letters, markup, and other bytes.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a measurement, not shipped")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use pipe_encoding::delta::{Receiver, Sender};
use pipe_encoding::{Windows, limits};

/// A generator of pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).unwrap_or_default() % bound.max(1)
    }

    fn from<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn bytes(&mut self, count: usize, alphabet: &[u8]) -> Vec<u8> {
        (0..count).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

const MARKUP: &[&[u8]] = &[
    b"<div class=\"story\">",
    b"</div>",
    b"<a href=\"/2003/",
    b"</a>",
    b"<p>",
    b"\n",
    b" ",
    b"the ",
    b"links ",
    b"<input type=\"hidden\" name=\"csrf\" value=\"",
    b"\">",
    b"<li>",
    b"aaaa",
    b"\x05",
];

/// Returns a base that holds a part of a form token, and a page that ends in the whole of it.
fn token(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let token = random.bytes(32, b"0123456789abcdef");
    let (field, known) = (b"name=\"csrf\" value=\"", random.below(33));
    let words = |random: &mut Random, bytes: usize| {
        let mut text = Vec::new();
        while text.len() < bytes {
            let length = 2 + random.below(9);
            text.extend(random.bytes(length, b"abcdefghijklmnopqrstuvwxyz"));
            text.push(b' ');
        }
        text.truncate(bytes);
        text
    };
    let rest = 100 + random.below(300);
    let base = [field, &token[..known], &words(random, rest)].concat();
    let before = random.below(200);
    let page = [&words(random, before), &b"<input type=hidden "[..], field, &token, b"\">"].concat();
    (base, page)
}

/// Returns a base and a page of the parts that `part` makes. Some of the base is in the page.
fn parts(random: &mut Random, most: usize, mut part: impl FnMut(&mut Random) -> Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mut made = |random: &mut Random| {
        let count = random.below(most);
        (0..count).flat_map(|_| part(random)).collect::<Vec<u8>>()
    };
    let (base, mut page) = (made(random), made(random));
    for _ in 0..random.below(4) {
        let (from, at) = (random.below(base.len() + 1), random.below(page.len() + 1));
        let length = random.below(base.len() - from + 1);
        page.splice(at..at, base[from..from + length].iter().copied());
    }
    (base, page)
}

fn made(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    match random.below(6) {
        0 | 1 => token(random),
        2 => {
            let letters = 2 + random.below(3);
            parts(random, 200, |random| random.bytes(1, &b"ab\x05cd"[..letters]))
        }
        3 => parts(random, 400, |random| random.from(&MARKUP[..13]).to_vec()),
        4 => parts(random, 400, |random| random.from(MARKUP).to_vec()),
        _ => {
            // Rarely a page beyond the encoder's ring.
            let most = if random.below(20_000) == 0 { 3 << 20 } else { 60 };
            parts(random, most, |random| {
                u16::try_from(random.below(1 << 16)).unwrap_or_default().to_le_bytes().to_vec()
            })
        }
    }
}

/// Returns true if the page arrives. The pieces have from one byte to all of them.
fn arrives(random: &mut Random, base: &[u8], page: &[u8]) -> bool {
    let windows = Windows::default();
    let mut sender = Sender::new(base, &windows).expect("memory");
    let (mut packed, mut rest) = (Vec::new(), page);
    let most = *random.from(&[&3_usize, &40, &500, &usize::MAX]);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(most)));
        sender.write(piece, &mut packed);
        rest = behind;
    }
    sender.finish(&mut packed);
    let mut receiver = Receiver::new(base.to_vec(), &windows);
    let mut got = Vec::new();
    receiver.write(&packed, &mut got, limits::BYTES_AT_ONCE).is_ok() && receiver.finish().is_ok() && got == page
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let count = arguments.next().expect("COUNT");
    let mut random = Random(arguments.next().unwrap_or(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    std::panic::set_hook(Box::new(|_| ()));
    let (mut pages, mut panics, mut wrong) = (0_u64, 0_u64, 0_u64);
    while count == 0 || pages < count {
        let (base, page) = made(&mut random);
        match catch_unwind(AssertUnwindSafe(|| arrives(&mut random, &base, &page))) {
            Ok(true) => (),
            Ok(false) => wrong += 1,
            Err(_) => panics += 1,
        }
        pages += 1;
        if pages == count || pages % 1_000_000 == 0 {
            println!("{pages} pages, {panics} panics, {wrong} wrong");
        }
    }
}
