//! The path of a request, from the clients to the origins, with a light at each part. Problems and the causes of
//! `status --why` decide it, so the page, the terminal and the JSON agree.

use serde::Serialize;

use super::problem::Problem;
use super::words::{bit_rate, millis};
use super::{Status, time};
use crate::measure::Silent;
use crate::report::HostFault;
use crate::why::{Cause, Measured, Timed, Verdict};

/// The state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Light {
    /// Nothing was heard of it yet.
    Quiet,
    /// It works.
    Ok,
    /// It takes more time than it should.
    Slow,
    /// It has a problem.
    Broken,
}

/// A part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    /// The clients and their networks.
    Clients,
    /// The box at the clients' end of a pair.
    Remote,
    /// The slow link.
    Link,
    /// The ground of a pair.
    Ground,
    /// A box alone.
    Edge,
    /// The origins, and the resolvers that know their addresses.
    Origins,
}

/// A part with its light.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Stop {
    /// The part.
    pub place: Place,
    /// Its name.
    pub name: &'static str,
    /// True for the part that this box is.
    pub is_here: bool,
    /// Its state.
    pub light: Light,
    /// The word beside the light. Colours alone tell some readers nothing.
    pub word: &'static str,
    /// The reason for the light, or a figure.
    pub words: String,
}

/// Returns the path of a box.
pub(super) fn path(status: &Status) -> Vec<Stop> {
    let places: &[Place] = match status.role.as_str() {
        "edge" => &[Place::Clients, Place::Link, Place::Edge, Place::Origins],
        _ => &[Place::Clients, Place::Remote, Place::Link, Place::Ground, Place::Origins],
    };
    places.iter().map(|place| stop(*place, status)).collect()
}

fn stop(place: Place, status: &Status) -> Stop {
    let is_here = is_here(place, &status.role);
    let broken = status.problems.iter().any(|problem| place_of(problem, &status.role) == place);
    let slow = || {
        let why = status.why.as_ref()?;
        why.causes().find(|part| place_of_cause(part.cause, &status.role) == place)
    };
    let (light, words) = if broken {
        (Light::Broken, fact(place, status).unwrap_or_default())
    } else if let Some(part) = slow() {
        (Light::Slow, format!("{}: {} % of the time", part.name, part.percent))
    } else {
        (quiet_or_ok(place, is_here, status), fact(place, status).unwrap_or_default())
    };
    let is_behind = light == Light::Quiet && is_cut(status);
    // Its figures are old.
    let (word, words) = if is_behind { ("not reached", String::new()) } else { (light.word(), words) };
    Stop { place, name: name(place), is_here, light, word, words }
}

fn is_here(place: Place, role: &str) -> bool {
    matches!((place, role), (Place::Edge, "edge") | (Place::Remote, "remote") | (Place::Ground, "ground"))
}

fn name(place: Place) -> &'static str {
    match place {
        Place::Clients => "Clients",
        Place::Remote => "Remote",
        Place::Link => "Link",
        Place::Ground => "Ground",
        Place::Edge => "This box",
        Place::Origins => "Origins",
    }
}

/// Returns true while nothing crosses the link.
fn is_cut(status: &Status) -> bool {
    let cuts = |problem: &Problem| matches!(problem, Problem::GroundDown { .. } | Problem::GroundSilent { .. });
    status.problems.iter().any(cuts)
}

/// Returns the light of a part without a problem and without a cause.
fn quiet_or_ok(place: Place, is_here: bool, status: &Status) -> Light {
    let is_cut = is_cut(status);
    let why = status.why.as_ref();
    let measured = why.map(|why| &why.measured);
    let is_used = why.is_some_and(|why| why.verdict != Verdict::Idle || why.measured.requests > 0);
    let other_end = status.pair.as_ref().is_some_and(|pair| pair.up);
    let heard = match place {
        _ if is_here => true,
        Place::Clients => is_used,
        Place::Link => !is_cut && (other_end || measured.is_some_and(|measured| measured.rtt_us.is_some())),
        Place::Remote | Place::Ground => other_end,
        Place::Edge => true,
        // Over warm connections, the only sign of an origin is its responses.
        Place::Origins => {
            !is_cut
                && measured.is_some_and(|Measured { connects, lookups, first_bytes, .. }| {
                    [connects, lookups, first_bytes].into_iter().any(Option::is_some)
                })
        }
    };
    if heard { Light::Ok } else { Light::Quiet }
}

/// Returns the part that a problem hinders.
fn place_of(problem: &Problem, role: &str) -> Place {
    let here = match role {
        "remote" => Place::Remote,
        "ground" => Place::Ground,
        _ => Place::Edge,
    };
    match problem {
        Problem::Packets { fault: HostFault::Unshaped { .. }, .. }
        | Problem::GroundSilent { kind: Silent::Link, .. }
        | Problem::LargePackets { .. } => Place::Link,
        Problem::Packets { .. } => Place::Clients,
        Problem::GroundDown { .. }
        | Problem::GroundSilent { kind: Silent::Program, .. }
        | Problem::GroundReports(_) => Place::Ground,
        Problem::ResolverDown { .. } | Problem::EveryQueryFails | Problem::ParentsDown => Place::Origins,
        _ => here,
    }
}

/// Returns the part that a cause belongs to.
fn place_of_cause(cause: Cause, role: &str) -> Place {
    match cause {
        Cause::ClientNetwork => Place::Clients,
        Cause::RoundTrip | Cause::Loss | Cause::Queue | Cause::Rate => Place::Link,
        Cause::Place if role != "edge" => Place::Ground,
        Cause::Place | Cause::Resolver | Cause::Origin => Place::Origins,
    }
}

/// Returns a figure of a part.
fn fact(place: Place, status: &Status) -> Option<String> {
    let measured = status.why.as_ref().map(|why| &why.measured);
    match place {
        Place::Clients => {
            let traffic = status.traffic.as_ref().filter(|_| status.role != "ground")?;
            Some(counted(traffic.clients.connections, "open connection"))
        }
        Place::Link => {
            let rtt = measured.and_then(|measured| measured.rtt_us).map(|rtt| format!("{} round trip", millis(rtt)));
            let rate = measured.map(|measured| format!("{} down", bit_rate(measured.down_bps)));
            let known: Vec<String> = rtt.into_iter().chain(rate).collect();
            Some(known.join(", ")).filter(|known| !known.is_empty())
        }
        Place::Edge | Place::Remote | Place::Ground if is_here(place, &status.role) => {
            Some(format!("up {}", time(status.uptime_s)))
        }
        Place::Ground => status.ground.as_deref().map(host),
        Place::Remote => Some(counted(status.pair.as_ref()?.pipe, "connection")),
        Place::Edge => None,
        Place::Origins => {
            let Timed { median_us, .. } = measured?.connects?;
            Some(format!("{} away", millis(median_us)))
        }
    }
}

/// Returns a name or address without its port.
fn host(at: &str) -> String {
    at.rsplit_once(':').map_or(at, |(host, _)| host).to_owned()
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

impl Light {
    fn word(self) -> &'static str {
        match self {
            Self::Quiet => "no traffic yet",
            Self::Ok => "ok",
            Self::Slow => "slow",
            Self::Broken => "broken",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{healthy, measured};
    use super::*;
    use crate::measure::Silent;
    use crate::why::explain;

    fn lights(status: &Status) -> Vec<(Place, Light)> {
        path(status).iter().map(|stop| (stop.place, stop.light)).collect()
    }

    fn with(role: &str, change: impl FnOnce(&mut Measured)) -> Status {
        let mut status = healthy(role);
        let mut figures = measured();
        change(&mut figures);
        let way =
            crate::why::Way { is_alone: role == "edge", rtt_us: 600_000, down_bps: 20_000_000, up_bps: 5_000_000 };
        status.why = explain(&figures, &way);
        status
    }

    #[test]
    fn every_part_of_a_healthy_path_is_ok_and_the_box_itself_is_marked() {
        let stops = path(&with("edge", |_| {}));
        assert!(stops.iter().all(|stop| stop.light == Light::Ok), "{stops:?}");
        let here: Vec<Place> = stops.iter().filter(|stop| stop.is_here).map(|stop| stop.place).collect();
        assert_eq!(here, [Place::Edge]);
    }

    #[test]
    fn one_sign_of_the_origins_is_enough() {
        const TIMES: Option<Timed> = Some(Timed { median_us: 1000, count: 9 });
        let light = |change: fn(&mut Measured)| {
            let lights = lights(&with("remote", |it| {
                (it.connects, it.lookups, it.first_bytes) = (None, None, None);
                change(it);
            }));
            lights.into_iter().find(|(place, _)| *place == Place::Origins).map(|(_, light)| light)
        };
        let signs: [fn(&mut Measured); 3] =
            [|it| it.connects = TIMES, |it| it.lookups = TIMES, |it| it.first_bytes = TIMES];
        assert_eq!(light(|_| {}), Some(Light::Quiet));
        for sign in signs {
            assert_eq!(light(sign), Some(Light::Ok));
        }
    }

    #[test]
    fn a_cause_makes_its_part_slow_and_no_other() {
        let slow = |role: &str, change: fn(&mut Measured)| {
            let lights = lights(&with(role, change));
            lights.into_iter().filter(|(_, light)| *light == Light::Slow).map(|(place, _)| place).collect::<Vec<_>>()
        };
        assert_eq!(slow("remote", |it| it.rtt_us = Some(2_000_000)), [Place::Link]);
        assert_eq!(slow("remote", |it| it.clients.slow = 1), [Place::Clients]);
        let far: fn(&mut Measured) = |it| it.connects = Some(Timed { median_us: 200_000, count: 9 });
        assert_eq!(slow("remote", far), [Place::Ground]);
        assert_eq!(slow("edge", far), [Place::Origins]);
        let names: fn(&mut Measured) = |it| it.lookups = Some(Timed { median_us: 900_000, count: 9 });
        assert_eq!(slow("ground", names), [Place::Origins]);
    }

    #[test]
    fn a_problem_breaks_its_part_and_what_lies_behind_it_is_unknown() {
        let mut status = with("remote", |it| it.connects = None);
        status.problems = vec![Problem::GroundDown { why: None }];
        let found = lights(&status);
        assert!(found.contains(&(Place::Ground, Light::Broken)) && found.contains(&(Place::Origins, Light::Quiet)));
        assert!(found.contains(&(Place::Remote, Light::Ok)), "{found:?}");
        status.problems = vec![Problem::GroundSilent { kind: Silent::Link, for_s: 9, port: 8443 }];
        assert!(lights(&status).contains(&(Place::Link, Light::Broken)));
        status.problems = vec![Problem::EveryQueryFails];
        assert!(lights(&status).contains(&(Place::Origins, Light::Broken)));
    }

    #[test]
    fn without_traffic_only_the_box_itself_is_ok() {
        let quiet = lights(&healthy("edge"));
        let ok = quiet.iter().filter(|(_, light)| *light == Light::Ok).map(|(place, _)| *place).collect::<Vec<_>>();
        assert_eq!(ok, [Place::Edge]);
        assert!(quiet.iter().all(|(_, light)| *light <= Light::Ok));
    }
}
