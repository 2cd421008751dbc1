//! The `link:` line that fits the measured link.

use longhaul_config::{Link, Rate, Settings, show_duration};

use super::estimate::Suggestion;

/// The direction in which a box sends over the link. The kernel keeps rates of what is sent alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To clients.
    Down,
    /// From clients.
    Up,
}

impl Direction {
    /// Returns the direction of a box with `settings`.
    pub(crate) fn of(settings: &Settings) -> Self {
        if settings.role.stands_beside_clients() { Self::Up } else { Self::Down }
    }

    /// Returns the key of its rate below `link`.
    #[must_use]
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    /// Returns its configured rate.
    #[must_use]
    pub(crate) fn rate(self, link: &Link) -> Rate {
        match self {
            Self::Down => link.down,
            Self::Up => link.up,
        }
    }
}

/// Returns the line for the configuration. None if the present one fits, or if nothing was measured.
pub(super) fn proposed_line(link: &Link, direction: Direction, better: &Suggestion) -> Option<String> {
    let rate = |of: Direction| better.rate.filter(|_| of == direction).unwrap_or_else(|| of.rate(link));
    let changes = *better != Suggestion { rtt: None, rate: None };
    changes.then(|| {
        format!(
            "link: {{ rtt: {}, down: {}, up: {} }}",
            show_duration(better.rtt.unwrap_or(link.rtt)),
            rate(Direction::Down),
            rate(Direction::Up)
        )
    })
}
