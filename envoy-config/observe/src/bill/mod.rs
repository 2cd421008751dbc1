//! The bill: the bytes of each group of clients over the link of a pair, and of each client and site.
//!
//! | module | answers |
//! |---|---|
//! | `billed` | what did a stream or connection move, as Envoy's line says? |
//! | `calendar` | in which day, week and month is a time? |
//! | `account` | what has a group used, and is it beyond its quota? |
//! | `ledger` | whose bytes are they? |
//! | `unbilled` | which bytes of the link has no client? |
//! | `who` | which client used which site in an hour? |
//!
//! Everything here takes values and returns values. `longhaul run` reads the lines, and writes the files.

mod account;
mod billed;
mod calendar;
mod ledger;
mod unbilled;
mod who;

pub use {
    account::{GroupReport, QuotaReport, Sum},
    billed::Billed,
    ledger::Ledger,
    who::{WhoHour, WhoSums},
};
