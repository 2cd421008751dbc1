//! The longhaul command: longhaul.yaml to Envoy and CoreDNS configuration, checked, rendered, run, explained.
fn main() {}
