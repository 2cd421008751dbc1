//! The budgets of all clients, and the outcome of each request.

use std::time::Duration;

use shared_board::{Board, Buckets, settled};

use http_semantics::labels::labelled;

use crate::client::Client;
use crate::config::Config;
use crate::limits::{BUCKET_ENTRIES, CLIENT_BUCKETS, NAME_BUCKETS, PERIOD};
use crate::name::Name;

/// An entry is the moment until which it counts, in microseconds.
const NAMES: Buckets<8> = Buckets { prefix: "n", buckets: NAME_BUCKETS, entries: BUCKET_ENTRIES };
const CLIENTS: Buckets<8> = Buckets { prefix: "c", buckets: CLIENT_BUCKETS, entries: BUCKET_ENTRIES };

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The name is paid for.
    Known,
    /// The name is new, and the client had a token for it.
    New,
    /// The request names no client. It passes.
    Unnamed,
    /// The name is new, and the client has no token.
    Refused {
        /// Seconds until the client has a token, at least 1.
        retry_after_s: u64,
    },
}

labelled! {
    /// An [`Outcome`] as a metric label.
    Reason {
        /// The name is paid for.
        Known = "known";
        /// The name is new, and the client has a token.
        New = "new";
        /// The request names no client.
        Unnamed = "unnamed";
        /// The name is new, and the client has no token.
        Refused = "refused";
    }
}

impl Outcome {
    /// Returns the metric label.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Known => Reason::Known,
            Self::New => Reason::New,
            Self::Unnamed => Reason::Unnamed,
            Self::Refused { .. } => Reason::Refused,
        }
    }
}

/// The budgets of all clients, shared by all workers.
#[derive(Debug, Clone)]
pub struct Budgets<B> {
    board: B,
    key: [u8; 16],
    /// Time in which a budget gains a token, in microseconds.
    token: u64,
}

impl<B: Board> Budgets<B> {
    /// Opens the budgets of this process. `drawn` becomes their hash key if no worker has set one before.
    pub fn new(config: &Config, board: B, drawn: [u8; 16]) -> Self {
        let key = settled(&board, "key", drawn);
        Self { board, key, token: micros(PERIOD) / u64::from(config.per_client.max(1)) }
    }

    /// Decides about a request of `client` for `name`. Takes a token if the name is new. `now` is the time of a clock
    /// that never steps.
    pub fn ask(&self, name: &Name, client: Option<Client>, now: Duration) -> Outcome {
        let Some(client) = client else { return Outcome::Unnamed };
        let now = micros(now);
        let parts = [name.scheme.as_slice(), name.authority.as_slice()];
        // In a full bucket, the entry that ends first makes room.
        let live = |until| Some(u64::from_le_bytes(until)).filter(|until| *until > now);
        if NAMES.get(&self.board, self.key, &parts).and_then(live).is_some() {
            return Outcome::Known;
        }
        let period = micros(PERIOD);
        // A budget is stored as the moment at which it will be full again. An empty one is full after a period.
        let mut late = 0;
        CLIENTS.change(&self.board, self.key, &[&client.bytes()], live, |full| {
            let then = full.map_or(now, u64::from_le_bytes).saturating_add(self.token);
            late = then.saturating_sub(now.saturating_add(period));
            if late == 0 { Some(then.to_le_bytes()) } else { full }
        });
        if late > 0 {
            return Outcome::Refused { retry_after_s: late.div_ceil(1_000_000) };
        }
        let until = now.saturating_add(period).to_le_bytes();
        NAMES.change(&self.board, self.key, &parts, live, |_| Some(until));
        Outcome::New
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;
    use shared_board::Memory;

    use super::*;
    use crate::limits::DEFAULT;

    fn budgets(per_client: u32) -> Budgets<Memory> {
        Budgets::new(&Config { per_client }, Memory::default(), [7; 16])
    }

    fn client(number: u8) -> Client {
        Client::V4([192, 0, 2, number])
    }

    fn ask<B: Board>(budgets: &Budgets<B>, name: &str, client: impl Into<Option<Client>>, ms: u64) -> Outcome {
        let name = Name { scheme: b"http".to_vec(), authority: name.as_bytes().to_vec() };
        budgets.ask(&name, client.into(), Duration::from_secs(1000) + Duration::from_millis(ms))
    }

    fn refused(outcome: Outcome) -> bool {
        outcome.reason() == Reason::Refused
    }

    #[test]
    fn a_client_that_floods_costs_itself_alone_a_name() {
        let budgets = budgets(DEFAULT);
        let passed = (0..5000).filter(|n| !refused(ask(&budgets, &format!("f{n}.test"), client(1), *n / 1000))).count();
        assert_eq!(passed, DEFAULT as usize);
        assert_eq!(ask(&budgets, "f5000.test", client(1), 5), Outcome::Refused { retry_after_s: 1 });
        for n in 0..DEFAULT {
            assert_eq!(ask(&budgets, &format!("o{n}.test"), client(2), 5), Outcome::New, "{n}");
            assert_eq!(ask(&budgets, &format!("f{n}.test"), client(1), 5), Outcome::Known, "the flooder's own {n}");
        }
        assert_eq!(ask(&budgets, "f1.test", client(3), 5), Outcome::Known, "paid for, for every client");
        assert_eq!(ask(&budgets, "w.test", None, 5), Outcome::Unnamed);
    }

    #[test]
    fn a_token_comes_back_in_its_time_and_pays_for_a_minute() {
        let budgets = budgets(600);
        for n in 0..600 {
            assert_eq!(ask(&budgets, &format!("{n}.test"), client(1), 0), Outcome::New);
        }
        assert!(refused(ask(&budgets, "a.test", client(1), 99)));
        assert_eq!(ask(&budgets, "a.test", client(1), 100), Outcome::New);
        assert!(refused(ask(&budgets, "b.test", client(1), 100)));
        assert_eq!(ask(&budgets, "0.test", client(1), 59_999), Outcome::Known);
        assert_eq!(ask(&budgets, "0.test", client(1), 60_000), Outcome::New, "paid for again");
        assert_eq!(ask(&budgets, "0.test", client(1), 119_999), Outcome::Known);
    }

    /// Fifty people behind one address each open a page every 90 seconds. Each page has sixty third-party names. Ten of
    /// them are its own, and fifty are among two hundred names that all pages share.
    #[test]
    fn the_crew_of_a_ship_behind_one_address_never_notices() {
        let budgets = budgets(DEFAULT);
        let mut chance = 1_u64;
        let mut next = |below: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) % below
        };
        for page in 0..50 * 40 {
            let ms = page * 90_000 / 50;
            for own in 0..10 {
                let outcome = ask(&budgets, &format!("{own}.page{page}.test"), client(1), ms);
                assert!(!refused(outcome), "page {page}");
            }
            for _ in 0..50 {
                let outcome = ask(&budgets, &format!("shared{}.test", next(200)), client(1), ms);
                assert!(!refused(outcome), "page {page}");
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let budgets = budgets(600);
        for n in 0..60_000_u32 {
            let [_, a, b, c] = n.to_be_bytes();
            ask(&budgets, &format!("{n}.test"), Client::V4([10, a, b, c]), u64::from(n) / 100);
        }
        let sizes = budgets.board.sizes();
        assert!(sizes.len() as u64 <= NAME_BUCKETS + CLIENT_BUCKETS + 1);
        assert!(sizes.iter().all(|(_, bytes)| *bytes <= BUCKET_ENTRIES * 16));
    }

    #[test]
    fn workers_share_budgets_and_names() {
        let one = budgets(64);
        let other = Budgets::new(&Config { per_client: 64 }, &one.board, [9; 16]);
        for n in 0..64 {
            ask(&one, &format!("{n}.test"), client(1), 0);
        }
        assert!(refused(ask(&other, "a.test", client(1), 0)));
        assert_eq!(ask(&other, "5.test", client(1), 0), Outcome::Known);
    }

    #[test]
    fn reasons_stand_where_their_index_says() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// In any order of requests of three clients:
        /// - A client is not refused if it sent at most a budget of requests in the last minute.
        /// - Nor is it refused if those requests had at most half a budget of different names.
        /// - In any two minutes, a client pays for at most three budgets of names.
        #[test]
        fn budgets_hold(steps in prop::collection::vec((0_u8..3, 0_u32..400, 0_u64..400), 1..600)) {
            const BUDGET: u32 = 64;
            let budgets = budgets(BUDGET);
            let mut ms = 0;
            let mut asked: HashMap<u8, Vec<(u64, u32)>> = HashMap::new();
            let mut paid: HashMap<u8, Vec<u64>> = HashMap::new();
            for (who, name, wait) in steps {
                // One client asks for few names, the others for many.
                let name = if who == 0 { name % 40 } else { name };
                ms += wait / 8;
                let outcome = ask(&budgets, &format!("{name}.test"), client(who), ms);
                let asked = asked.entry(who).or_default();
                asked.push((ms, name));
                if outcome == Outcome::New {
                    paid.entry(who).or_default().push(ms);
                }
                let recent: Vec<u32> = asked.iter().filter(|(at, _)| at + 60_000 > ms).map(|(_, name)| *name).collect();
                if recent.len() <= BUDGET as usize || recent.iter().collect::<HashSet<_>>().len() <= BUDGET as usize / 2 {
                    prop_assert!(!refused(outcome), "client {who} at {ms}");
                }
                let window = paid.get(&who).map_or(0, |paid| paid.iter().filter(|at| **at + 120_000 > ms).count());
                prop_assert!(window <= 3 * BUDGET as usize);
            }
        }
    }
}
