//! A link emulator on TUN devices: rate, delay, loss, queue, outages, seeded.
fn main() {}
