//! Tracks whether the ground supports compressed headers. Only evidence from the ground itself changes the belief of
//! this state machine.
//!
//! | belief | a request that may go twice | any other request |
//! |---|---|---|
//! | unknown | compressed | plain, with an offer |
//! | supported | compressed | compressed |
//! | not supported, and no offer is due | plain | plain |
//! | not supported, and an offer is due | plain, with an offer | plain, with an offer |
//!
//! | evidence | new belief |
//! |---|---|
//! | a consent or a compressed response, on a stream that offered or was compressed after the last refusal | supported |
//! | the same on a stream from before the last refusal | no change: the refusal is newer |
//! | a consent on a stream that offered nothing | no change: an origin may have written it |
//! | a refusal of the format, or a compressed request without a compressed response | not supported |

use std::time::Duration;

/// Time between two offers to a ground that does not support compressed headers.
pub const OFFER_INTERVAL: Duration = Duration::from_mins(1);

/// The remote's belief about its ground.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    belief: Belief,
    refusals: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Belief {
    #[default]
    Unknown,
    Speaks,
    /// Not supported. The next offer is due at this time.
    Plain(Duration),
}

/// The form in which a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// In a compressed field.
    Packed(Turn),
    /// Plain, with an offer.
    Offer(Turn),
    /// Plain.
    Plain,
}

/// The number of refusals that the remote had seen when a request left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn(u64);

impl Peer {
    /// Chooses the form of a request. `repeatable` means that the request does no harm if it reaches an origin twice.
    pub(crate) fn way(&mut self, repeatable: bool, now: Duration) -> Way {
        let turn = Turn(self.refusals);
        match self.belief {
            Belief::Speaks => Way::Packed(turn),
            Belief::Unknown if repeatable => Way::Packed(turn),
            Belief::Unknown => Way::Offer(turn),
            Belief::Plain(due) if now < due => Way::Plain,
            Belief::Plain(_) => {
                self.belief = Belief::Plain(now + OFFER_INTERVAL);
                Way::Offer(turn)
            }
        }
    }

    /// Records that the ground consented to the request that left at `turn`, or decompressed it.
    pub(crate) fn consents(&mut self, turn: Turn) {
        if turn.0 == self.refusals {
            self.belief = Belief::Speaks;
        }
    }

    /// Records that the ground did not decompress a compressed request.
    pub(crate) fn refuses(&mut self, now: Duration) {
        self.refusals += 1;
        self.belief = Belief::Plain(now + OFFER_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event at a remote.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Request {
            repeatable: bool,
        },
        /// The ground consents to the oldest pending request that was compressed or had an offer.
        Consent,
        Refusal,
        Passes(u8),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            4 => any::<bool>().prop_map(|repeatable| Event::Request { repeatable }),
            3 => Just(Event::Consent),
            1 => Just(Event::Refusal),
            1 => (0..90_u8).prop_map(Event::Passes),
        ];
        proptest::collection::vec(event, 0..60)
    }

    #[derive(Default)]
    struct World {
        peer: Peer,
        now: Duration,
        under_way: Vec<Turn>,
    }

    impl World {
        fn apply(&mut self, event: Event) -> Option<Way> {
            match event {
                Event::Request { repeatable } => {
                    let way = self.peer.way(repeatable, self.now);
                    if let Way::Packed(turn) | Way::Offer(turn) = way {
                        self.under_way.push(turn);
                    }
                    return Some(way);
                }
                Event::Consent if !self.under_way.is_empty() => {
                    let turn = self.under_way.remove(0);
                    self.peer.consents(turn);
                }
                Event::Consent => {}
                Event::Refusal => self.peer.refuses(self.now),
                Event::Passes(seconds) => self.now += Duration::from_secs(seconds.into()),
            }
            None
        }
    }

    proptest! {
        /// After a refusal no request is compressed until an offer is due and the ground consents to it, whatever older
        /// streams still bring.
        #[test]
        fn after_a_refusal_nothing_goes_packed_before_a_new_consent(before in events(), after in events()) {
            let mut world = World::default();
            for event in before {
                world.apply(event);
            }
            world.apply(Event::Refusal);
            let older = world.under_way.len();
            let (mut answered, mut consented) = (0, false);
            for event in after {
                if matches!(event, Event::Consent) && !world.under_way.is_empty() {
                    answered += 1;
                    consented |= answered > older;
                }
                if matches!(event, Event::Refusal) {
                    break;
                }
                if let Some(Way::Packed(_)) = world.apply(event) {
                    prop_assert!(consented);
                }
            }
        }

        /// The remote learns within one interval and two requests that a ground supports compressed headers.
        #[test]
        fn a_ground_that_speaks_is_found_out(before in events()) {
            let mut world = World::default();
            for event in before {
                world.apply(event);
            }
            world.now += OFFER_INTERVAL;
            match world.peer.way(false, world.now) {
                Way::Offer(turn) | Way::Packed(turn) => world.peer.consents(turn),
                Way::Plain => prop_assert!(false, "an offer is due"),
            }
            prop_assert!(matches!(world.peer.way(false, world.now), Way::Packed(_)));
        }

        /// Unless the ground has consented, an origin gets a request twice only if that does no harm.
        #[test]
        fn an_unknown_ground_never_gets_a_packed_request_that_must_not_repeat(count in 1..20_usize) {
            let mut peer = Peer::default();
            for _ in 0..count {
                prop_assert!(matches!(peer.way(false, Duration::ZERO), Way::Offer(_)));
            }
        }
    }
}
