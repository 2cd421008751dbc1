//! Why a body was passed on untouched from some point.

use std::fmt;

use http_semantics::labels::labelled;

labelled! {
    /// Why rewriting stopped. In each case the body is whole: the changes before that point stay, and the rest is as it came.
    BailOut {
        /// It needed more memory than `limits.page_memory_bytes`.
        Memory = "memory";
        /// It grew by `limits.output_growth_bytes`.
        Growth = "growth";
        /// Its encoding is not an extension of ASCII.
        Encoding = "encoding";
        /// The parser stopped, or lost its position in the input: a fault of this crate, not of the page.
        Parser = "parser";
    }
}

impl fmt::Display for BailOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
