//! `longhaul run` with the real Envoy, CoreDNS and filter: what an operator sees when he starts, changes, breaks and stops
//! it.
//!
//! They are `LONGHAUL_ENVOY`, `LONGHAUL_COREDNS` and `LONGHAUL_URL_REWRITE`, or what `make build` made. Without one of
//! them every test here is skipped and says so; with `LONGHAUL_REQUIRE_ALL=1` that is a failure. Everything runs on
//! loopback, each test on an address of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod support;

mod changes;
mod deaths;
mod start;
mod status;
mod stop;
