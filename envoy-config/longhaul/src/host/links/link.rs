//! One of several links: its signs, its state, and what the kernel needs for it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use longhaul_config::{Family, Price};
use longhaul_derive::LinkPlan;
use longhaul_observe::measure::Connection;
use longhaul_observe::report::LinkState;

use super::judge::{Judge, Signs, Times};
use super::paths::{PathFault, PathJudge, Paths};
use super::probe::Probes;
use super::setup::{Places, Present};
use super::stand_in::StandIn;
use super::{say, since_1970};

/// One link.
pub(super) struct Link {
    pub plan: LinkPlan,
    pub judge: Judge,
    pub places: Places,
    pub probes: Probes,
    /// The bytes of each connection over it, as they were at the last look.
    seen: HashMap<[u8; 8], u64>,
    pub paths: Paths,
    path_judge: PathJudge,
    hindered: Option<PathFault>,
    pub stand_in: StandIn,
    rtt: Option<Duration>,
    /// The time of the last change, in seconds since 1970, and the number of deaths.
    pub changed_at: u64,
    pub deaths: u32,
}

impl Link {
    pub(super) fn new(plan: LinkPlan, now: Duration) -> Self {
        let judge = Judge::new(Times::of(&plan), now);
        Self {
            plan,
            judge,
            places: Places::default(),
            probes: Probes::default(),
            seen: HashMap::new(),
            paths: Paths::default(),
            path_judge: PathJudge::default(),
            hindered: None,
            stand_in: StandIn::default(),
            rtt: None,
            changed_at: since_1970(),
            deaths: 0,
        }
    }

    /// Returns the signs since the last look, by its address of the ground's family.
    pub(super) fn signs(&mut self, ground: Family, connections: &[Connection]) -> Signs {
        let answered = self.probes.answered();
        if answered.is_some() {
            self.rtt = answered;
        }
        let place = self.places.of(ground);
        let mut signs = Signs { present: place.is_some(), answered: answered.is_some(), ..Signs::default() };
        self.paths = Paths::default();
        let Some(place) = place else { return signs };
        let mut seen = HashMap::new();
        for one in connections.iter().filter(|one| one.id.local.ip() == place.address) {
            let bytes = one.received.saturating_add(one.acknowledged_bytes);
            signs.progress |= self.seen.get(&one.id.cookie).is_none_or(|before| *before < bytes);
            signs.waiting |= one.unacknowledged > 0;
            seen.insert(one.id.cookie, bytes);
            // A probe has received nothing.
            match (one.is_multipath, one.received) {
                (true, _) => self.paths.multipath += 1,
                (false, 0) => {}
                (false, _) => self.paths.plain += 1,
            }
        }
        self.seen = seen;
        signs
    }

    pub(super) fn present(&self) -> Present {
        Present {
            device: self.plan.device().to_string(),
            used: self.plan.used,
            places: self.places,
            mtu: self.plan.link.mtu,
            died: self.judge.died(),
        }
    }

    pub(super) fn state(&self, ground: Family, bytes: &BTreeMap<String, (u64, u64)>) -> LinkState {
        let (down_bytes, up_bytes) = bytes.get(self.plan.device().as_str()).copied().unwrap_or_default();
        LinkState {
            name: self.plan.link.name.clone(),
            device: self.plan.device().to_string(),
            used: self.plan.used.as_str().to_owned(),
            alive: self.judge.is_alive(),
            changed_at: self.changed_at,
            deaths: self.deaths,
            rtt_ms: self.rtt.map(|rtt| u64::try_from(rtt.as_millis()).unwrap_or(u64::MAX)),
            address: self.places.of(ground).map(|place| place.address.to_string()),
            down_bytes,
            up_bytes,
            metered: self.plan.link.price == Price::Metered,
            stood_in_s: self.stand_in.time.as_secs(),
            stood_in_down_bytes: self.stand_in.down_bytes,
            stood_in_up_bytes: self.stand_in.up_bytes,
            multipath: self.paths.multipath,
            plain: self.paths.plain,
            hindered: self.hindered.map(|fault| fault.to_string()),
        }
    }

    /// Judges the connections over it, beside those over other links. Writes a line when a fault begins or ends.
    pub(super) fn judge_paths(&mut self, now: Duration, others: Paths) {
        let fault = self.path_judge.look(now, self.judge.is_alive(), self.paths, others);
        let name = &self.plan.link.name;
        match fault {
            _ if fault == self.hindered => {}
            Some(fault) => say(&format!("warning: the link {name}: {fault}")),
            None if self.judge.is_alive() => say(&format!("connections outlive the link {name} again")),
            // The line about its end is enough.
            None => {}
        }
        self.hindered = fault;
    }
}
