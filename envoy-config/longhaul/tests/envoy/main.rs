//! The rendered configuration on the real Envoy: Envoy accepts it and does what it says.
//!
//! Envoy is `LONGHAUL_ENVOY` or `target/dist/envoy`. Without it every test here is skipped and says so. With
//! `LONGHAUL_REQUIRE_ALL=1` that is a failure. Everything runs on loopback, and each test has its own addresses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod support;

mod bodies;
mod cache;
mod challenges;
mod encoding;
mod filter;
mod guard;
mod hardening;
mod headers;
mod intercept;
mod methods;
mod names;
mod pools;
mod prefetch;
mod reload;
mod scheme;
mod status;
mod stored;
mod streams;
mod tls;
mod validation;
