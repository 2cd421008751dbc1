//! Trains dictionaries of `header-codec` from traces of real headers.
//!
//! | module | job |
//! |---|---|
//! | [`traces`] | reads stories, HAR and QIF files and plain header lists |
//! | [`pages`] | extracts URLs from saved pages, to learn the form of paths |
//! | [`common`] | selects the names, values and blocks that many traces share |
//! | [`questions`] | passes traces through the codec and records every decision |
//! | [`votes`] | learns the probability of each decision in each context |
//! | [`mod@file`] | writes the dictionary |

pub mod common;
pub mod file;
pub mod pages;
pub mod questions;
pub mod traces;
pub mod votes;
