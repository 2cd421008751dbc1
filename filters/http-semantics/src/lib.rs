//! The questions about HTTP that several parts must answer alike, each answered in one place.
//!
//! The crate is pure: values in, values out. It knows neither Envoy nor files, and it has one clock: the caller's.
//!
//! | module | question |
//! |---|---|
//! | [`fields`] | Which values does this header list hold? |
//! | [`labels`] | How is an enum of reasons written in metrics? |

pub mod fields;
pub mod labels;

pub use fields::Fields;
