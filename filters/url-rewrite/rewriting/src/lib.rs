//! Where URLs occur in pages, style sheets and headers, and replacing them: pure, streaming.
