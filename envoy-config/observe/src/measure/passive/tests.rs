use super::*;

const PAUSE: Duration = Duration::from_secs(10);
const LINK: &str = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n";
const EDGE: &str = "proxy: { addresses: [198.51.100.12] }\nupstream: { resolvers: [192.0.2.53] }\n";

fn passive() -> Passive {
    let loaded = longhaul_config::load_text(std::path::Path::new("longhaul.yaml"), format!("{LINK}{EDGE}")).unwrap();
    Passive::of(&loaded.settings)
}

/// Returns connections of `count` clients with a round trip of `rtt_ms`.
fn clients(count: u16, rtt_ms: u32) -> Vec<Connection> {
    let one = |number: u16| Connection {
        id: ConnectionId {
            local: "192.0.2.1:80".parse().unwrap(),
            remote: (std::net::Ipv4Addr::new(192, 0, 2, 2), number).into(),
            cookie: [0; 8],
        },
        min_rtt_us: Some(rtt_ms * 1000),
        segments: 1,
        ..Connection::idle(number)
    };
    (0..count).map(one).collect()
}

/// Returns the result of `readings`, one after the other.
fn after(readings: impl IntoIterator<Item = Vec<Connection>>) -> Noticed {
    let mut passive = passive();
    (0..).zip(readings).map(|(step, reading)| passive.add(PAUSE * step, &reading)).last().unwrap()
}

/// Returns `intervals` of transfers that fill a link of `mbit` from beginning to end.
fn transfers(count: u16, intervals: u64, mbit: u64) -> impl Iterator<Item = Vec<Connection>> {
    let share = mbit * 125_000 * 10 / u64::from(count);
    let at =
        move |step| Connection { delivery_rate: 1, app_limited: false, delivered: share * step, ..clients(1, 600)[0] };
    (0..=intervals)
        .map(move |step| clients(count, 600).into_iter().map(|one| Connection { id: one.id, ..at(step) }).collect())
}

#[test]
fn a_round_trip_that_is_off_by_half_is_noticed_after_several_readings() {
    let noticed = after((0..3).map(|_| clients(5, 82)));
    assert_eq!(noticed.rtt.as_deref(), Some("82ms"));
    let misfit = noticed.misfit.unwrap();
    assert_eq!(
        misfit.to_string(),
        "`link.rtt` is 600ms, but 82ms was measured; this line fits: `link: { rtt: 82ms, down: 20mbit, up: 5mbit }`"
    );
    let above = after((0..3).map(|_| clients(5, 1300))).misfit.unwrap();
    assert_eq!(above.values[0].off, Off::Above);
    assert!(!above.is_like(&misfit) && misfit.is_like(&misfit));
    assert_eq!(after((0..2).map(|_| clients(5, 82))).misfit, None, "too few readings");
}

#[test]
fn a_link_that_fits_or_that_few_connections_show_is_no_misfit() {
    for rtt in [310, 600, 1190] {
        let noticed = after((0..9).map(|_| clients(9, rtt)));
        assert!(noticed.rtt.is_some() && noticed.misfit.is_none(), "{noticed:?}");
    }
    let few = after((0..9).map(|_| clients(4, 82)));
    assert_eq!((few.rtt, few.rate, few.misfit), (None, None, None));
}

#[test]
fn clients_beside_the_box_are_no_link() {
    let near = |rtt: Vec<Connection>| rtt.into_iter().map(|one| Connection { min_rtt_us: Some(50), ..one }).collect();
    assert_eq!(
        after((0..9).map(|_| near(clients(50, 1)))),
        Noticed { direction: "down".to_owned(), ..Noticed::default() }
    );
}

#[test]
fn a_queue_before_most_clients_is_no_slower_link() {
    let mixed = || clients(20, 1500).into_iter().chain(clients(23, 600).into_iter().skip(20)).collect();
    assert_eq!(after((0..9).map(|_| mixed())).misfit, None);
}

#[test]
fn a_rate_needs_several_transfers_that_fill_the_link_for_a_minute() {
    let noticed = after(transfers(5, 8, 8));
    assert_eq!(noticed.rate.as_deref(), Some("8mbit"));
    let misfit = noticed.misfit.unwrap();
    assert_eq!((misfit.values.len(), misfit.values[0].off), (1, Off::Below));
    assert_eq!(misfit.line, "link: { rtt: 600ms, down: 8mbit, up: 5mbit }");
    assert_eq!(after(transfers(5, 8, 50)).misfit.unwrap().values[0].off, Off::Above);
    assert_eq!(after(transfers(5, 8, 18)).misfit, None);
    assert_eq!(after(transfers(4, 8, 8)).rate, None, "too few transfers");
    assert_eq!(after(transfers(5, 5, 8)).rate, None, "too few intervals");
}

#[test]
fn readings_of_long_ago_do_not_count() {
    let mut passive = passive();
    for step in 0..3 {
        passive.add(PAUSE * step, &clients(5, 82));
    }
    assert!(passive.add(PAUSE * 3, &[]).misfit.is_some());
    let later = passive.add(RULE.window + PAUSE * 3, &[]);
    assert_eq!((later.rtt, later.misfit), (None, None));
    assert!(passive.seen.is_empty() && passive.full.is_empty());
}
