//! The fetches of one worker: their order, how many run at a time, and the facts that their results teach.

use std::collections::{HashMap, VecDeque};

use object_rules::storable;
use url_mapping::Use;
use url_rewriting::headers::Fields;
use url_rewriting::headers::request::{Exchange, Visit};

use crate::limits::{IN_FLIGHT, IN_FLIGHT_A_HOST, LATE_MS, WAITING};
use crate::memory::{Known, Memory};
use crate::observer::Candidate;
use crate::{Failure, Skip};

/// A request to be sent now.
#[derive(Debug)]
pub struct Order {
    candidate: Candidate,
}

impl Order {
    /// Returns its headers, pseudo-header fields first.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let Candidate { scheme, authority, path, usage, template } = &self.candidate;
        template.fields(*scheme, authority, path, *usage)
    }
}

/// How a fetch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The object is cached.
    Stored,
    /// It is of no use.
    Failed(Failure),
}

/// The prefetches of one worker.
#[derive(Debug, Default)]
pub struct Fetcher {
    /// Scripts and style sheets, which a browser waits for before it shows anything.
    first: VecDeque<Waiting>,
    /// Everything else, in the order of the pages.
    then: VecDeque<Waiting>,
    in_flight: HashMap<u32, Candidate>,
    of_host: HashMap<String, usize>,
    memory: Memory,
}

#[derive(Debug)]
struct Waiting {
    candidate: Candidate,
    since_ms: u64,
}

impl Fetcher {
    /// Queues a candidate. Times are milliseconds since a fixed moment.
    ///
    /// # Errors
    /// The reason why it is not fetched.
    pub fn ask(&mut self, candidate: Candidate, now_ms: u64) -> Result<(), Skip> {
        if self.first.len() + self.then.len() >= WAITING {
            return Err(Skip::QueueFull);
        }
        let proven = match self.memory.of(candidate.scheme.as_str(), &candidate.authority, &candidate.path, now_ms) {
            Some(Known::Held) => return Err(Skip::Held),
            Some(Known::LeftAlone) => return Err(Skip::LeftAlone),
            Some(Known::NotKept) => return Err(Skip::Uncacheable),
            Some(Known::Kept) => true,
            None => false,
        };
        let queue = match candidate.usage {
            Use::Script | Use::Stylesheet | Use::CssImport => &mut self.first,
            _ if !proven && candidate.path.contains('?') => return Err(Skip::Unproven),
            _ => &mut self.then,
        };
        queue.push_back(Waiting { candidate, since_ms: now_ms });
        Ok(())
    }

    /// Returns true if no candidate waits.
    pub fn is_idle(&self) -> bool {
        self.first.is_empty() && self.then.is_empty()
    }

    /// Returns the next request to send now. `skipped` receives the reason of each candidate that waited too long.
    pub fn next(&mut self, now_ms: u64, mut skipped: impl FnMut(Skip)) -> Option<Order> {
        if self.in_flight.len() >= IN_FLIGHT {
            return None;
        }
        for queue in [&mut self.first, &mut self.then] {
            let mut at = 0;
            while let Some(waiting) = queue.get(at) {
                let Waiting { candidate, since_ms } = waiting;
                if now_ms.saturating_sub(*since_ms) > LATE_MS {
                    skipped(Skip::Late);
                } else if is_under_way(&self.in_flight, candidate)
                    || self.memory.of(candidate.scheme.as_str(), &candidate.authority, &candidate.path, now_ms)
                        == Some(Known::Held)
                {
                    skipped(Skip::Held);
                } else if self.of_host.get(&candidate.authority).is_some_and(|count| *count >= IN_FLIGHT_A_HOST) {
                    at += 1;
                    continue;
                } else {
                    return queue.remove(at).map(|waiting| Order { candidate: waiting.candidate });
                }
                queue.remove(at);
            }
        }
        None
    }

    /// Records that the order was sent. Its end is reported under `token`.
    pub fn sent(&mut self, order: Order, token: u32) {
        *self.of_host.entry(order.candidate.authority.clone()).or_default() += 1;
        self.in_flight.insert(token, order.candidate);
    }

    /// Records that the order could not be sent.
    pub fn not_sent(&mut self, order: &Order, now_ms: u64) -> Ended {
        let Candidate { scheme, authority, path, .. } = &order.candidate;
        self.memory.leave_alone(scheme.as_str(), authority, path, now_ms);
        Ended::Failed(Failure::NotSent)
    }

    /// Records the end of a fetch, with the headers of its response if one came. `None` for an unknown token.
    pub fn ended(&mut self, token: u32, answer: Option<&Fields<'_>>, now_ms: u64) -> Option<Ended> {
        let candidate = self.in_flight.remove(&token)?;
        if let Some(count) = self.of_host.get_mut(&candidate.authority) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_host.remove(&candidate.authority);
            }
        }
        let (scheme, authority, path) =
            (candidate.scheme.as_str(), candidate.authority.as_str(), candidate.path.as_str());
        let failure = match answer {
            None => Failure::NoAnswer,
            Some(fields) if fields.get(":status") != Some(b"200") => Failure::Status,
            Some(fields) => {
                let Some(fresh_ms) = kept_ms(path, fields) else {
                    self.memory.not_kept(scheme, authority, path, now_ms);
                    return Some(Ended::Failed(Failure::Uncacheable));
                };
                self.memory.held(scheme, authority, path, fresh_ms, now_ms);
                return Some(Ended::Stored);
            }
        };
        self.memory.leave_alone(scheme, authority, path, now_ms);
        Some(Ended::Failed(failure))
    }

    /// Learns from the response to a browser's own request for a moved object.
    pub fn saw(&mut self, visit: &Visit, fields: &Fields<'_>, now_ms: u64) {
        let plain = visit.moved.is_some() && visit.exchange == Exchange::Ordinary;
        if !plain || fields.get(":status") != Some(b"200") {
            return;
        }
        let (scheme, authority, path) = (visit.scheme, visit.authority.as_str(), visit.path.as_str());
        match kept_ms(path, fields) {
            // The cache may have refused this one for another header of the browser.
            Some(_) => self.memory.kept(scheme.as_str(), authority, path, now_ms),
            None => self.memory.not_kept(scheme.as_str(), authority, path, now_ms),
        }
    }
}

/// Returns the milliseconds for which the cache serves the response to `path` without its origin. `None` if it does not. A
/// worker's clock is no calendar, so only the response's own `Age` counts.
fn kept_ms(path: &str, response: &Fields<'_>) -> Option<u64> {
    let request: Fields<'_> = [(&b":path"[..], path.as_bytes())].into_iter().collect();
    let life = storable(&request, response, 0, 0).ok().filter(|life| !life.always_validate)?;
    let left_s = life.lifetime_s.saturating_sub(life.initial_age_s);
    (left_s > 0).then(|| left_s.saturating_mul(1_000))
}

fn is_under_way(in_flight: &HashMap<u32, Candidate>, candidate: &Candidate) -> bool {
    in_flight.values().any(|other| {
        (other.scheme, &other.authority, &other.path) == (candidate.scheme, &candidate.authority, &candidate.path)
    })
}
