//! The slots of the workers, shared by clients. One client's images do not keep another one's from a worker.
//!
//! Each client has a debt: the time for which its images had slots, less a quarter of all slots' time since then. A
//! client that loads a page now and then stays far below [`HEAVY`].
//!
//! | client | slots at once | without a free slot | of those that wait |
//! |---|---|---|---|
//! | below [`HEAVY`] | all | waits for half of the time for an image | the least debt comes first, then the first one |
//! | above | all but one, or the only one | its image stays at once: a queue has stood for a while | none waits |

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use name_budget::Client;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The debt from which on a client is heavy, in times for one image.
const HEAVY: u32 = 2;
/// The largest debt, in times for one image. A client that stops is not heavy for long.
const MOST_DEBT: u32 = 4;
/// The part of all slots that a client may have for ever without a debt.
const FREE_PART: u32 = 4;
/// The number of clients that are remembered before those without a debt are forgotten.
const MANY_CLIENTS: usize = 1024;

/// The client whose images these are. Requests without a name are those of one client.
pub type Owner = Option<Client>;

/// All slots.
#[derive(Debug, Clone)]
pub struct Slots {
    state: Arc<Mutex<State>>,
    time: Duration,
}

/// The slot of one image, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Slots,
    client: Owner,
    since: Instant,
}

#[derive(Debug)]
struct State {
    workers: u32,
    free: u32,
    time: Duration,
    accounts: HashMap<Owner, Account>,
    waiting: VecDeque<(Owner, oneshot::Sender<Slot>)>,
}

#[derive(Debug, Clone, Copy)]
struct Account {
    slots: u32,
    debt: Duration,
    at: Instant,
}

/// The response to a client's image that needs a slot.
#[derive(Debug, PartialEq, Eq)]
enum Chance {
    Now,
    Waits,
    Never,
}

impl Slots {
    /// Makes slots for so many workers. `time` is the longest time for one image.
    pub fn new(workers: u32, time: Duration) -> Self {
        let state = State { workers, free: workers, time, accounts: HashMap::new(), waiting: VecDeque::new() };
        Self { state: Arc::new(Mutex::new(state)), time }
    }

    /// Returns a slot. Waits for one, up to half of the time for an image. None if there is none by then, or if the client
    /// is heavy and there is none now.
    pub async fn take(&self, client: Owner) -> Option<Slot> {
        let waiting = {
            let now = Instant::now();
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match state.chance(client, now) {
                Chance::Now => return Some(self.slot(&mut state, client, now)),
                Chance::Never => return None,
                Chance::Waits => {
                    let (wake, waiting) = oneshot::channel();
                    state.waiting.push_back((client, wake));
                    waiting
                }
            }
        };
        timeout(self.time / 2, waiting).await.ok()?.ok()
    }

    fn slot(&self, state: &mut State, client: Owner, now: Instant) -> Slot {
        state.free = state.free.saturating_sub(1);
        state.account(client, now).slots += 1;
        Slot { slots: self.clone(), client, since: now }
    }

    /// Gives a free slot to one that waits for it.
    fn pass_on(&self) {
        let given = {
            let now = Instant::now();
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.next(now).map(|(client, wake)| (wake, self.slot(&mut state, client, now)))
        };
        // Without the lock: if nobody waits any more, the slot comes back and is dropped.
        if let Some((wake, slot)) = given {
            drop(wake.send(slot));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let now = Instant::now();
            let mut state = self.slots.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.free += 1;
            state.returned(self.client, now.duration_since(self.since), now);
        }
        self.slots.pass_on();
    }
}

impl State {
    /// Returns the account of a client, with its debt of now.
    fn account(&mut self, client: Owner, now: Instant) -> &mut Account {
        let gain = self.workers;
        let paid = |account: &mut Account| {
            let time = now.saturating_duration_since(account.at);
            account.debt = account.debt.saturating_sub(time * gain / FREE_PART);
            account.at = now;
        };
        if self.accounts.len() >= MANY_CLIENTS {
            self.accounts.values_mut().for_each(paid);
            self.accounts.retain(|_, account| account.slots > 0 || !account.debt.is_zero());
        }
        let account = self.accounts.entry(client).or_insert(Account { slots: 0, debt: Duration::ZERO, at: now });
        paid(account);
        account
    }

    fn chance(&mut self, client: Owner, now: Instant) -> Chance {
        let (free, fewer, heavy) = (self.free, self.workers.saturating_sub(1).max(1), self.time * HEAVY);
        let account = self.account(client, now);
        match (free > 0, account.debt > heavy) {
            (true, false) => Chance::Now,
            (true, true) if account.slots < fewer => Chance::Now,
            (_, true) => Chance::Never,
            (false, false) => Chance::Waits,
        }
    }

    fn returned(&mut self, client: Owner, used: Duration, now: Instant) {
        let most = self.time * MOST_DEBT;
        let account = self.account(client, now);
        account.slots = account.slots.saturating_sub(1);
        account.debt = (account.debt + used).min(most);
    }

    /// Takes the next one of those that wait for a free slot.
    fn next(&mut self, now: Instant) -> Option<(Owner, oneshot::Sender<Slot>)> {
        if self.free == 0 {
            return None;
        }
        self.waiting.retain(|(_, wake)| !wake.is_closed());
        let owners: Vec<Owner> = self.waiting.iter().map(|(client, _)| *client).collect();
        let burdens = owners.into_iter().map(|client| {
            let account = self.account(client, now);
            (account.slots, account.debt)
        });
        let (first, _) = burdens.enumerate().min_by_key(|(_, burden)| *burden)?;
        self.waiting.remove(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(200);

    fn client(name: &str) -> Owner {
        Client::of(name.as_bytes())
    }

    /// Lets a client use a slot for so long, without waiting for it.
    fn used(slots: &Slots, client: Owner, time: Duration) {
        slots.state.lock().unwrap().returned(client, time, Instant::now());
    }

    #[tokio::test]
    async fn an_image_waits_for_a_worker_and_not_for_long() {
        let slots = Slots::new(1, TIME);
        let taken = slots.take(client("192.0.2.1")).await.unwrap();
        let start = Instant::now();
        assert!(slots.take(client("192.0.2.2")).await.is_none());
        assert!(start.elapsed() >= TIME / 2);
        let (waited, ()) = tokio::join!(slots.take(client("192.0.2.2")), async { drop(taken) });
        assert!(waited.is_some());
    }

    #[tokio::test]
    async fn a_quiet_client_has_all_slots_and_a_heavy_one_leaves_a_slot_to_others() {
        let slots = Slots::new(2, TIME);
        let (heavy, other) = (client("192.0.2.1"), client("192.0.2.2"));
        let both = (slots.take(heavy).await, slots.take(heavy).await);
        assert!(both.0.is_some() && both.1.is_some());
        drop(both);
        used(&slots, heavy, TIME * 3);
        let one = slots.take(heavy).await.unwrap();
        let start = Instant::now();
        assert!(slots.take(heavy).await.is_none(), "one slot is for others");
        assert!(start.elapsed() < TIME / 4, "its queue has stood for a while, so it does not wait");
        assert!(slots.take(other).await.is_some());
        drop(one);
        let state = || slots.state.lock().unwrap().chance(heavy, Instant::now() + TIME * 3);
        assert_eq!(state(), Chance::Now, "a debt ends");
    }

    #[tokio::test]
    async fn of_those_that_wait_the_client_with_the_least_debt_comes_first() {
        let slots = Slots::new(1, TIME);
        let (busy, other) = (client("192.0.2.1"), client("192.0.2.2"));
        let taken = slots.take(client("192.0.2.3")).await.unwrap();
        used(&slots, busy, TIME);
        let order = Mutex::new(Vec::new());
        let ask = async |client, name| {
            let slot = slots.take(client).await;
            order.lock().unwrap().push(name);
            drop(slot);
        };
        tokio::join!(ask(busy, "busy"), ask(busy, "busy"), ask(other, "other"), async { drop(taken) });
        assert_eq!(*order.lock().unwrap(), ["other", "busy", "busy"]);
    }

    #[tokio::test]
    async fn a_slot_whose_image_gave_up_goes_to_the_next_one() {
        let slots = Slots::new(1, TIME);
        let taken = slots.take(client("192.0.2.1")).await.unwrap();
        let gone = timeout(TIME / 10, slots.take(client("192.0.2.2"))).await;
        assert!(gone.is_err(), "its request ended before its turn");
        let (waited, ()) = tokio::join!(slots.take(client("192.0.2.3")), async { drop(taken) });
        assert!(waited.is_some());
        drop(waited);
        assert_eq!(slots.state.lock().unwrap().free, 1);
    }

    #[test]
    fn clients_without_a_debt_are_forgotten() {
        let slots = Slots::new(2, TIME);
        for number in 0..3000 {
            used(&slots, client(&std::net::Ipv4Addr::from_bits(number).to_string()), Duration::ZERO);
        }
        assert!(slots.state.lock().unwrap().accounts.len() <= MANY_CLIENTS);
    }
}
