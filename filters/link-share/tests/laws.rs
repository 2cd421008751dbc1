//! The laws of the order, on links with streams that always have more to send.

#![allow(clippy::indexing_slicing)]

use std::collections::HashMap;
use std::time::Duration;

use link_share::cost::on_link;
use link_share::{Link, StreamId, Subscriber, Verdict};
use proptest::prelude::*;

/// A link, and streams that offer the next piece as soon as the former one is sent.
struct Bed {
    link: Link,
    now: Duration,
    /// By stream: its client, and the bytes of its pieces.
    streams: HashMap<StreamId, (usize, u64)>,
    /// By client: the bytes on the link.
    sent: Vec<u64>,
}

impl Bed {
    fn new(bytes_per_second: u64, clients: usize) -> Self {
        let link = Link::new(Some(bytes_per_second), Duration::ZERO);
        Self { link, now: Duration::ZERO, streams: HashMap::new(), sent: vec![0; clients] }
    }

    fn open(&mut self, client: usize, tenths: u32, piece: u64) -> StreamId {
        let address = format!("192.0.2.{client}");
        let id = self.link.open(Subscriber::of(address.as_bytes()), tenths, self.now);
        self.streams.insert(id, (client, piece));
        self.offer(id);
        id
    }

    /// Opens a stream that has one piece and no more. None: it passes at once.
    fn open_once(&mut self, client: usize, tenths: u32, piece: u64) -> Option<StreamId> {
        let id = self.open(client, tenths, 0);
        (self.link.offer(id, piece, self.now) == Verdict::Wait).then_some(id)
    }

    fn offer(&mut self, id: StreamId) {
        // A free link takes pieces until its allowance is used up.
        let (client, piece) = self.streams[&id];
        while piece > 0 && self.link.offer(id, piece, self.now) == Verdict::Pass {
            self.sent[client] += on_link(piece);
        }
    }

    /// Lets time pass. Returns the streams in the order in which they sent.
    fn run(&mut self, time: Duration) -> Vec<StreamId> {
        let (end, mut order) = (self.now + time, Vec::new());
        while let Some(wait) = self.link.until_turn().filter(|wait| self.now + *wait <= end) {
            self.now += wait;
            while let Some(id) = self.link.turn(self.now) {
                let (client, piece) = self.streams[&id];
                self.sent[client] += on_link(piece);
                order.push(id);
                self.offer(id);
            }
        }
        self.now = end;
        order
    }

    /// Lets time pass until a stream sends. Most of its piece is owed then.
    fn turn(&mut self) {
        let id = loop {
            match self.link.turn(self.now) {
                Some(id) => break id,
                None => self.now += SECOND / 100,
            }
        };
        let (client, piece) = self.streams[&id];
        self.sent[client] += on_link(piece);
        self.offer(id);
    }
}

const USUAL_TENTHS: u32 = Subscriber::USUAL_TENTHS;
const SECOND: Duration = Duration::from_secs(1);
const RATE: u64 = 235_000;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    /// Each of the clients with enough to send gets a share by its weight, whatever the number and the sizes of its streams.
    #[test]
    fn shares_follow_the_weights(
        clients in prop::collection::vec((1_u32..100, prop::collection::vec(1_u64..70_000, 1..8)), 2..6),
    ) {
        let mut bed = Bed::new(RATE, clients.len());
        for (client, (tenths, pieces)) in clients.iter().enumerate() {
            for piece in pieces {
                bed.open(client, *tenths, *piece);
            }
        }
        bed.run(SECOND * 20);
        let before = bed.sent.clone();
        bed.run(SECOND * 600);
        let total: u64 = clients.iter().map(|(tenths, _)| u64::from(*tenths)).sum();
        for (client, (tenths, _)) in clients.iter().enumerate() {
            let sent = bed.sent[client] - before[client];
            let share = RATE * 600 * u64::from(*tenths) / total;
            // A client may be ahead or behind by two pieces, at each end.
            prop_assert!(sent.abs_diff(share) < 4 * 73_000, "{client}: {sent} of {share}");
        }
    }

    /// The link is used as much as it may be, and never more but for what it had saved up and one piece.
    #[test]
    fn the_rate_is_kept(rate in 1_000_u64..10_000_000, pieces in prop::collection::vec(1_u64..70_000, 1..10)) {
        let mut bed = Bed::new(rate, 1);
        for piece in pieces {
            bed.open(0, USUAL_TENTHS, piece);
        }
        bed.run(SECOND * 100);
        let allowed = rate * 100;
        prop_assert!(bed.sent[0] + 1 >= allowed, "{} of {allowed}", bed.sent[0]);
        prop_assert!(bed.sent[0] < allowed + rate / 20 + 2 * 73_000, "{} of {allowed}", bed.sent[0]);
    }

    /// Without a limit, streams wait while their connection is full, and then each has a turn before any has a second one. A page
    /// is first.
    #[test]
    fn without_a_limit_the_streams_of_a_full_connection_take_turns(
        pieces in prop::collection::vec(33_000_u64..70_000, 2..20),
        rounds in 1_usize..5,
    ) {
        let (mut link, now) = (Link::new(None, Duration::ZERO), Duration::ZERO);
        let client = Subscriber::of(b"192.0.2.1");
        let ids: Vec<StreamId> = pieces.iter().map(|_| link.open(client, USUAL_TENTHS, now)).collect();
        for (id, piece) in ids.iter().zip(&pieces) {
            prop_assert_eq!(link.offer(*id, *piece, now), Verdict::Pass);
        }
        let page = link.open(client, USUAL_TENTHS, now);
        for _ in 0..rounds {
            for id in &ids {
                link.hold_up(*id);
            }
            prop_assert_eq!(link.turn(now), None);
            for id in &ids {
                link.release(*id);
            }
            for (id, piece) in ids.iter().zip(&pieces) {
                prop_assert_eq!(link.offer(*id, *piece, now), Verdict::Wait, "the first one would fill the connection");
            }
            prop_assert_eq!(link.offer(page, 1, now), Verdict::Wait);
            let mut turns: Vec<StreamId> = std::iter::from_fn(|| link.turn(now)).collect();
            prop_assert_eq!(turns.remove(0), page);
            turns.sort_unstable();
            prop_assert_eq!(&turns, &ids);
            for (id, piece) in ids.iter().zip(&pieces) {
                prop_assert_eq!(link.offer(*id, *piece, now), Verdict::Pass);
            }
        }
    }

    /// A full connection costs its own streams their turns, and nobody else. With room again, all of them are served.
    #[test]
    fn a_full_connection_holds_up_its_own_streams_alone(
        clients in prop::collection::vec(0_usize..3, 2..12),
        full in prop::collection::vec(any::<bool>(), 12),
        while_waiting in any::<bool>(),
    ) {
        let mut bed = Bed::new(RATE, 3);
        let mut held = Vec::new();
        for (client, is_full) in clients.iter().zip(&full) {
            let address = format!("192.0.2.{client}");
            let id = bed.link.open(Subscriber::of(address.as_bytes()), USUAL_TENTHS, bed.now);
            bed.streams.insert(id, (*client, 16_384));
            if *is_full && !while_waiting {
                bed.link.hold_up(id);
            }
            bed.offer(id);
            if *is_full && while_waiting {
                bed.link.hold_up(id);
            }
            held.push((id, *is_full));
        }
        let order = bed.run(SECOND * 20);
        for (id, is_full) in &held {
            prop_assert_eq!(order.contains(id), !is_full);
        }
        let others = full.iter().zip(&clients).filter(|(is_full, _)| !**is_full).count();
        prop_assert!(others == 0 || bed.sent.iter().sum::<u64>() >= RATE * 20, "others use the link");
        for (id, _) in &held {
            bed.link.release(*id);
        }
        // A download waits until each smaller stream of its client is a download, too: a third of the link and 38 s for eleven.
        let order = bed.run(SECOND * 60);
        for (id, _) in &held {
            prop_assert!(order.contains(id));
        }
        for (id, _) in &held {
            bed.link.hold_up(*id);
            bed.link.close(*id, bed.now);
        }
        prop_assert_eq!(bed.link.until_turn(), None, "nobody is left");
    }

    /// A stream that waits is served, unless it ends. One that has ended is not.
    #[test]
    fn each_waiting_stream_has_its_turn(closed in prop::collection::vec(any::<bool>(), 2..20)) {
        let mut bed = Bed::new(RATE, closed.len());
        let ids: Vec<StreamId> = (0..closed.len()).map(|client| bed.open(client, USUAL_TENTHS, 40_000)).collect();
        for (id, _) in ids.iter().zip(&closed).filter(|(_, closed)| **closed) {
            bed.link.close(*id, bed.now);
        }
        let order = bed.run(SECOND * 20);
        for (id, closed) in ids.iter().zip(&closed) {
            prop_assert_eq!(order.contains(id), !closed);
        }
    }
}

#[test]
fn the_first_bytes_of_a_stream_go_before_downloads_of_the_same_client() {
    let mut bed = Bed::new(RATE, 1);
    for _ in 0..16 {
        bed.open(0, USUAL_TENTHS, 16_384);
    }
    bed.run(SECOND * 30);
    let page = bed.open(0, USUAL_TENTHS, 16_384);
    let order = bed.run(SECOND);
    let of_page = order.iter().take_while(|id| **id == page).count();
    assert_eq!(of_page, order.len(), "up to 256 KiB, a second of this link");
    assert!(bed.run(SECOND * 5).iter().filter(|id| **id != page).count() > 50, "then it is one of 17 downloads");
}

/// A page over https sends little, several times in a row. A turn of an upload takes a quarter of a second of this link.
#[test]
fn the_first_bytes_of_a_stream_pass_while_the_link_pays_for_a_turn() {
    for uploader in [0, 1] {
        let mut bed = Bed::new(60_000, 2);
        bed.open(uploader, USUAL_TENTHS, 16_384);
        bed.run(SECOND * 30);
        let page = bed.open(0, USUAL_TENTHS, 0);
        for _ in 0..20 {
            bed.turn();
            assert_eq!(bed.link.offer(page, 600, bed.now), Verdict::Pass);
            bed.sent[0] += on_link(600);
            bed.run(SECOND / 2);
        }
        let before = bed.sent[uploader];
        bed.run(SECOND * 10);
        assert!(bed.sent[uploader] - before > 550_000, "nothing is owed for longer");
    }
}

#[test]
fn clients_borrow_until_the_link_owes_two_turns() {
    let rate = 60_000;
    let passed = |clients: usize, piece: u64| {
        let mut bed = Bed::new(rate, 100);
        bed.open(99, USUAL_TENTHS, 16_384);
        bed.run(SECOND * 30);
        bed.turn();
        let fresh = (0..100).map(|number| {
            let id = bed.link.open(
                Subscriber::of(format!("192.0.2.{}", number % clients).as_bytes()),
                USUAL_TENTHS,
                bed.now,
            );
            bed.link.offer(id, piece, bed.now)
        });
        fresh.filter(|verdict| *verdict == Verdict::Pass).count() as u64 * on_link(piece)
    };
    let turn = 16_384;
    for (clients, piece) in [(1, 600), (1, 5000), (50, 600), (50, 5000)] {
        let bytes = passed(clients, piece);
        assert!(bytes > turn / 2 && bytes < turn * 2 + on_link(piece), "{clients} clients, {piece}: {bytes}");
    }
    assert_eq!(passed(50, 33_000), 0, "more than first bytes");
}

/// A debt shrinks while others wait, also if no turn looks at it.
#[test]
fn a_paid_debt_lets_first_bytes_pass() {
    let mut bed = Bed::new(60_000, 2);
    bed.open(1, USUAL_TENTHS, 16_384);
    bed.run(SECOND * 30);
    bed.turn();
    let open = |bed: &mut Bed, client: u8| {
        bed.link.open(Subscriber::of(format!("192.0.2.{client}").as_bytes()), USUAL_TENTHS, bed.now)
    };
    let borrowers: Vec<StreamId> = (100..150).map(|client| open(&mut bed, client)).collect();
    let verdicts: Vec<Verdict> = borrowers.iter().map(|id| bed.link.offer(*id, 5000, bed.now)).collect();
    assert!(verdicts.contains(&Verdict::Pass) && verdicts.ends_with(&[Verdict::Wait]), "{verdicts:?}");
    let page = open(&mut bed, 0);
    assert_eq!(bed.link.offer(page, 5000, bed.now + SECOND / 5), Verdict::Pass, "12 KB have been paid");
}

#[test]
fn large_streams_wait_while_a_connection_is_backed_up_and_first_bytes_do_not() {
    let mut bed = Bed::new(60_000, 2);
    bed.open(1, USUAL_TENTHS, 16_384);
    bed.run(SECOND * 30);
    bed.link.set_unsent(4097);
    assert_eq!(bed.run(SECOND), []);
    assert_eq!(bed.link.turn(bed.now), None, "nothing is owed any more");
    assert!(bed.link.until_turn() >= Some(SECOND / 20), "the thread would look all the time");
    let page = bed.open(0, USUAL_TENTHS, 0);
    assert_eq!(bed.link.offer(page, 33_000, bed.now), Verdict::Wait, "more than may be borrowed");
    assert_eq!(bed.link.turn(bed.now), Some(page));
    bed.link.set_unsent(4096);
    assert!(bed.run(SECOND).len() > 1);

    let mut unlimited = Link::new(None, Duration::ZERO);
    let stream = unlimited.open(Subscriber::of(b"192.0.2.7"), USUAL_TENTHS, Duration::ZERO);
    unlimited.set_unsent(u64::MAX);
    assert_eq!(unlimited.offer(stream, 1 << 40, Duration::ZERO), Verdict::Pass);
}

#[test]
fn only_a_large_stream_holds_no_more_than_a_turn_of_the_link() {
    for (rate, held) in [(1_000_000, 50_000), (10_000, 16_384), (0, 16_384), (u64::MAX, u64::MAX / 20)] {
        let mut link = Link::new(Some(rate), Duration::ZERO);
        let stream = link.open(Subscriber::of(b"192.0.2.7"), USUAL_TENTHS, Duration::ZERO);
        link.pass(stream, 256 * 1024 - 1, Duration::ZERO);
        assert_eq!(link.most_held(stream), None);
        link.pass(stream, 1, Duration::ZERO);
        assert_eq!(link.most_held(stream), Some(held), "{rate}");
        link.close(stream, Duration::ZERO);
        assert_eq!(link.most_held(stream), None);
    }
}

#[test]
fn a_pause_makes_a_stream_new_again() {
    let mut bed = Bed::new(RATE, 1);
    let downloads: Vec<StreamId> = (0..4).map(|_| bed.open(0, USUAL_TENTHS, 16_384)).collect();
    let shell = bed.link.open(Subscriber::of(b"192.0.2.0"), USUAL_TENTHS, bed.now);
    bed.streams.insert(shell, (0, 100));
    bed.run(SECOND * 30);
    // It has sent a screen of 300 KB, and its user reads.
    while bed.link.offer(shell, 300_000, bed.now) == Verdict::Wait && !bed.run(SECOND / 10).contains(&shell) {}
    bed.streams.insert(shell, (0, 0));
    let after = bed.run(SECOND * 5);
    assert!(after.iter().any(|id| downloads.contains(id)));
    bed.turn();
    assert_eq!(bed.link.offer(shell, 100, bed.now), Verdict::Pass);
}

#[test]
fn a_client_that_returns_is_next_after_one_piece_of_each_other_client() {
    let mut bed = Bed::new(RATE, 6);
    for client in 1..6 {
        for _ in 0..16 {
            bed.open(client, USUAL_TENTHS, 16_384);
        }
    }
    bed.run(SECOND * 60);
    let page = bed.open(0, USUAL_TENTHS, 1000);
    let order = bed.run(SECOND * 5);
    let turn = order.iter().position(|id| *id == page).unwrap();
    assert!(turn <= 5, "turn {turn}");
}

#[test]
fn idle_time_earns_nothing_and_a_new_stream_for_each_request_loses_no_debt() {
    let mut bed = Bed::new(RATE, 2);
    bed.open(1, USUAL_TENTHS, 16_384);
    bed.run(SECOND * 60);
    // A client of short streams, each of 64 KB, comes after a minute.
    let before = bed.sent[1];
    let mut short = bed.open(0, USUAL_TENTHS, 65_536);
    let mut sent = 0;
    for _ in 0..6000 {
        if bed.run(SECOND / 100).contains(&short) {
            bed.link.close(short, bed.now);
            sent += on_link(65_536);
            short = bed.open(0, USUAL_TENTHS, 65_536);
        }
    }
    let other = bed.sent[1] - before;
    assert!(sent.abs_diff(other) < 300_000, "{sent} beside {other}");
}

#[test]
fn a_lower_rate_holds_for_running_streams_at_once() {
    let mut bed = Bed::new(RATE, 1);
    bed.open(0, USUAL_TENTHS, 16_384);
    bed.run(SECOND * 10);
    bed.link.set_rate(Some(RATE / 2), bed.now);
    let before = bed.sent[0];
    bed.run(SECOND * 10);
    assert!((bed.sent[0] - before).abs_diff(RATE * 5) < 40_000, "{}", bed.sent[0] - before);
}

#[test]
fn a_new_weight_holds_for_running_streams() {
    let mut bed = Bed::new(RATE, 2);
    bed.open(0, USUAL_TENTHS, 16_384);
    bed.open(1, USUAL_TENTHS, 16_384);
    bed.run(SECOND * 10);
    let slow = Subscriber::of(b"192.0.2.1");
    bed.link.weigh(|client| if client == slow { 1 } else { USUAL_TENTHS });
    let before = bed.sent[1];
    bed.run(SECOND * 110);
    assert!((bed.sent[1] - before).abs_diff(RATE * 10) < 40_000, "an eleventh: {}", bed.sent[1] - before);
}

/// Four clients download on a link, and the pieces of another client's page come at once.
fn beside_downloads(page: &[u64]) -> (Bed, Vec<StreamId>) {
    let mut bed = Bed::new(RATE, 7);
    for client in 1..5 {
        bed.open(client, USUAL_TENTHS, 16_384);
    }
    bed.run(SECOND * 60);
    let objects = page.iter().filter_map(|bytes| bed.open_once(0, USUAL_TENTHS, *bytes)).collect();
    (bed, objects)
}

#[test]
fn a_page_goes_before_the_downloads_of_others_and_they_keep_a_quarter() {
    let (mut bed, objects) = beside_downloads(&[4000; 80]);
    let before: u64 = bed.sent[1..5].iter().sum();
    // 320 KB take two seconds of three quarters of the link, and seven of an equal share.
    let order = bed.run(SECOND * 2);
    assert!(objects.iter().all(|id| order.contains(id)), "{} of {}", order.len(), objects.len());
    let downloads = bed.sent[1..5].iter().sum::<u64>() - before;
    assert!(downloads > RATE * 2 / 5, "{downloads}");
}

#[test]
fn a_client_that_pauses_again_and_again_gains_a_quarter_of_the_link_at_most() {
    let (mut bed, _) = beside_downloads(&[]);
    let before: u64 = bed.sent.iter().sum();
    for _ in 0..200 {
        let download = bed.open(0, USUAL_TENTHS, 16_384);
        bed.run(SECOND * 3 / 2);
        bed.link.close(download, bed.now);
        bed.run(SECOND / 2);
    }
    let (gained, all) = (bed.sent[0], bed.sent.iter().sum::<u64>() - before);
    assert!(
        gained * 100 < all * (20 + 7),
        "an equal share for three quarters of the time, and what silence saves: {gained} of {all}"
    );
}

#[test]
fn the_page_that_began_first_ends_first_and_the_first_bytes_of_another_pass_it() {
    let (mut bed, first) = beside_downloads(&[8000; 40]);
    let mut order = bed.run(SECOND / 2);
    let second: Vec<StreamId> = (0..40).filter_map(|_| bed.open_once(5, USUAL_TENTHS, 8000)).collect();
    order.extend(bed.run(SECOND * 8));
    let place = |id: &StreamId| order.iter().position(|other| other == id).unwrap();
    let ends = |objects: &[StreamId]| objects.iter().map(place).max().unwrap();
    assert!(ends(&first) < ends(&second));
    assert!(place(&second[0]) < ends(&first), "the first 32 KB");
    let late = second[4..].iter().map(place).min().unwrap();
    assert!(late > ends(&first), "the rest");
}

#[test]
fn a_lighter_client_saves_less() {
    let (mut bed, _) = beside_downloads(&[]);
    let slow: Vec<StreamId> = (0..40).filter_map(|_| bed.open_once(5, 1, 8000)).collect();
    let page: Vec<StreamId> = (0..40).filter_map(|_| bed.open_once(6, USUAL_TENTHS, 8000)).collect();
    let order = bed.run(SECOND * 3);
    assert!(page.iter().all(|id| order.contains(id)));
    let early = slow.iter().filter(|id| order.contains(id)).count();
    assert!(early < 12, "a tenth of two seconds, and a share of a tenth: {early}");
}
