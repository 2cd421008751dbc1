//! Routes to the clients. They carry the values that no socket option can set: the initial window and the clamp.

use longhaul_derive::Derived;

/// The attributes that Longhaul sets. Each is followed by its value, with `lock` between them where the route has it.
const OURS: &[&str] = &["initcwnd", "initrwnd", "cwnd"];
/// Words of `ip route show` about the present state of a route. `ip route change` does not accept them.
const STATES: &[&str] = &["linkdown", "dead", "pervasive", "offload", "trap"];

/// The change of one route that `ip route show dev IF` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RouteChange {
    /// The arguments of `ip route change` that set the new route.
    pub(super) wanted: Vec<String>,
    /// The arguments that set the earlier route.
    pub(super) before: Vec<String>,
}

/// Returns true if the kernel made the route for the link itself, or from a router advertisement that it renews. Such
/// routes stay as they are.
pub(super) fn is_of_the_kernel_alone(route: &str) -> bool {
    let mut words = route.split_whitespace();
    let to_the_link =
        words.next().is_none_or(|to| to.starts_with("fe80:") || to == "multicast" || to.starts_with("ff"));
    to_the_link || words.any(|word| word == "expires")
}

/// Returns the changes of the routes of `interface`. `routes` is the output of `ip -4 route show dev IF`, or `-6`.
pub(super) fn changes(routes: &str, interface: &str, derived: &Derived) -> Vec<RouteChange> {
    let routes = routes.lines().filter(|line| !is_of_the_kernel_alone(line));
    routes
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .map(|words| change(&words, interface, derived))
        .collect()
}

fn change(words: &[&str], interface: &str, derived: &Derived) -> RouteChange {
    let before = with_device(words.iter().copied().filter(|word| !STATES.contains(word)), interface);
    let mut wanted = with_device(without_ours(words).into_iter(), interface);
    let window = derived.initial_window.value.to_string();
    wanted.extend(["initcwnd".to_owned(), window.clone(), "initrwnd".to_owned(), window]);
    if let Some(clamp) = derived.window_clamp.value {
        wanted.extend(["cwnd".to_owned(), "lock".to_owned(), clamp.to_string()]);
    }
    RouteChange { wanted, before }
}

/// Adds the device, which `ip route show dev IF` omits.
fn with_device<'w>(words: impl Iterator<Item = &'w str>, interface: &str) -> Vec<String> {
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    if !words.iter().any(|word| word == "dev") {
        let at = if words.get(1).is_some_and(|word| word == "via") { 3 } else { 1 };
        let at = at.min(words.len());
        words.splice(at..at, ["dev".to_owned(), interface.to_owned()]);
    }
    words
}

fn without_ours<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let mut kept = Vec::new();
    let mut words = words.iter().copied().filter(|word| !STATES.contains(word));
    while let Some(word) = words.next() {
        if !OURS.contains(&word) {
            kept.push(word);
        } else if words.next() == Some("lock") {
            words.next();
        }
    }
    kept
}

#[cfg(test)]
mod tests {

    use longhaul_config::load_text;
    use longhaul_derive::{HostFacts, derive};

    use super::*;

    fn derived(more: &str) -> Derived {
        let text = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\nupstream: { resolvers: [192.0.2.53] }\n";
        let loaded = load_text("test.yaml".as_ref(), format!("{text}{more}")).unwrap();
        derive(&loaded.settings, &HostFacts::unknown())
    }

    #[test]
    fn windows_are_added_behind_what_a_route_has_and_taken_back_exactly() {
        let routes = "192.0.2.0/25 proto kernel scope link src 192.0.2.1 linkdown \n198.51.100.0/24 via 192.0.2.7 metric 50 initcwnd 20 cwnd lock 9\n";
        let changes = changes(routes, "lan0", &derived(""));
        let shown: Vec<_> = changes.iter().map(|change| (change.wanted.join(" "), change.before.join(" "))).collect();
        assert_eq!(
            shown,
            [
                (
                    "192.0.2.0/25 dev lan0 proto kernel scope link src 192.0.2.1 initcwnd 173 initrwnd 173".to_owned(),
                    "192.0.2.0/25 dev lan0 proto kernel scope link src 192.0.2.1".to_owned()
                ),
                (
                    "198.51.100.0/24 via 192.0.2.7 dev lan0 metric 50 initcwnd 173 initrwnd 173".to_owned(),
                    "198.51.100.0/24 via 192.0.2.7 dev lan0 metric 50 initcwnd 20 cwnd lock 9".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn the_clamp_is_locked_where_it_is_set() {
        let changes = changes("default via 192.0.2.1\n", "lan0", &derived("transport: { window_clamp: 8 }\n"));
        assert_eq!(changes[0].wanted.join(" "), "default via 192.0.2.1 dev lan0 initcwnd 173 initrwnd 173 cwnd lock 8");
    }
}
