//! Where URLs occur in pages, style sheets and headers, and replacing them: pure, streaming.

mod bail_out;
mod char_refs;
mod charset;
pub mod config;
mod css;
pub mod eligible;
mod find;
pub mod headers;
mod html;
pub mod inline;
mod ledger;
pub mod limits;
mod links;
pub mod media;
mod patch;
pub mod places;
pub mod plan;
pub mod prefetch;
mod preloads;
mod rewriter;
mod rules;
mod savings;
mod srcset;
mod true_url;
mod unpack;

pub use bail_out::BailOut;
pub use config::Config;
pub use headers::csp::Policies;
pub use ledger::{Fetch, Observer, Tally, UrlEvent};
pub use limits::Limits;
pub use places::Place;
pub use plan::{Plan, PlanError};
pub use preloads::Preloads;
pub use rewriter::{Body, Chunk, Kind, Rewriter};
pub use savings::Savings;
pub use unpack::{Broken, Packing};
