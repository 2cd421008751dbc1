//! Trains dictionaries of `header-codec` from traces of real headers.
//!
//! | module | what it does |
//! |---|---|
//! | [`traces`] | reads stories, HAR and QIF files and plain header lists |
//! | [`pages`] | takes URLs out of saved pages, to learn what paths look like |
//! | [`common`] | picks the names, values and blocks that are worth knowing in advance |
//! | [`questions`] | plays traces through the codec and notes every decision it asks about |
//! | [`votes`] | learns how likely each decision is in each context |
//! | [`file`] | writes the dictionary |

pub mod common;
pub mod file;
pub mod pages;
pub mod questions;
pub mod traces;
pub mod votes;
