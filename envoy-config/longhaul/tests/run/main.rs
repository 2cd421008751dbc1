//! `longhaul run` with the real Envoy, CoreDNS and filter, as an operator sees it: starts, changes, faults and stops.
//!
//! The programs are named by `LONGHAUL_ENVOY` and the variables like it, or are the output of `make build`.
//! Without one of them every test here is skipped and says so. With `LONGHAUL_REQUIRE_ALL=1` that is a failure.
//! Everything runs on loopback, and each test has its own address.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod support;

mod changes;
mod deaths;
mod history;
mod notices;
mod start;
mod status;
mod stop;
