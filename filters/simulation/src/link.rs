//! The link: a delay, a rate, and times without it.

/// A direction of the link.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    rate: u64,
    free_at_ms: u64,
}

/// Both directions.
#[derive(Debug, Default)]
pub(crate) struct Link {
    delay_ms: u64,
    jitter_ms: u64,
    up: Way,
    down: Way,
    back_at_ms: u64,
}

impl Link {
    pub(crate) fn new(rtt_ms: u64, jitter_ms: u64, up: u64, down: u64) -> Self {
        let way = |rate| Way { rate, free_at_ms: 0 };
        Self { delay_ms: rtt_ms / 2, jitter_ms, up: way(up), down: way(down), back_at_ms: 0 }
    }

    /// Carries nothing until `back_at_ms`.
    pub(crate) fn cut(&mut self, back_at_ms: u64) {
        self.back_at_ms = self.back_at_ms.max(back_at_ms);
    }

    /// The time at which it carries something again.
    pub(crate) fn back_at_ms(&self) -> u64 {
        self.back_at_ms
    }

    /// Sends bytes towards the ground, and returns when they arrive.
    pub(crate) fn send_up(&mut self, now_ms: u64, bytes: usize, random: &mut fastrand::Rng) -> u64 {
        let late = random.u64(0..=self.jitter_ms);
        Self::send(&mut self.up, now_ms.max(self.back_at_ms), bytes) + self.delay_ms + late
    }

    /// Sends bytes towards the remote, and returns when they arrive.
    pub(crate) fn send_down(&mut self, now_ms: u64, bytes: usize, random: &mut fastrand::Rng) -> u64 {
        let late = random.u64(0..=self.jitter_ms);
        Self::send(&mut self.down, now_ms.max(self.back_at_ms), bytes) + self.delay_ms + late
    }

    fn send(way: &mut Way, now_ms: u64, bytes: usize) -> u64 {
        let takes_ms = (bytes as u64 * 1000).div_ceil(way.rate.max(1));
        way.free_at_ms = way.free_at_ms.max(now_ms) + takes_ms;
        way.free_at_ms
    }
}
