//! Are images recoded on this box, and why?
//!
//! A smaller image costs 10 to 60 ms of processor time before its first byte. At 384 kbit/s an average image then arrives
//! 0.7 s sooner, and at 20 Mbit/s 13 ms.

use longhaul_config::{Cache, ImagesWish, Link, Price, Rate, Settings};

/// The fastest link on which `page.images: auto` recodes images.
const FASTEST: Rate = Rate { bits_per_second: 2_000_000 };

/// The choice for images, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagesChoice {
    /// True if clients that accept WebP get smaller images from this box.
    pub on: bool,
    /// The reason.
    pub reason: String,
}

impl ImagesChoice {
    pub(super) fn of(settings: &Settings) -> Self {
        let Link { down, price, .. } = settings.link;
        let (on, reason) = match (settings.role.changes_pages(), &settings.cache, settings.images.wish) {
            (false, ..) => (false, "the ground recodes them".to_owned()),
            (_, _, ImagesWish::Off) => (false, "page.images is off".to_owned()),
            (_, Cache::Off | Cache::Parents(_), _) => {
                (false, "no cache on disk, so each request would recode".to_owned())
            }
            (_, _, ImagesWish::On) => (true, "page.images".to_owned()),
            (_, _, ImagesWish::Auto) if price == Price::Metered => (true, "each byte has a price".to_owned()),
            (_, _, ImagesWish::Auto) if down <= FASTEST => (true, format!("at {down} bytes bound pages")),
            (_, _, ImagesWish::Auto) => (false, format!("at {down} they would cost more time than they save")),
        };
        Self { on, reason }
    }
}
