//! Configuration bytes to [`Plan`]; refused with the core's message.

use crate::ahead::Ahead;
use crate::counters::Counters;
use crate::stream::Stream;
use filter_host::body::{self, Buffer};
use filter_host::callout::Token;
use filter_host::log::{self, Level};
use filter_host::timer;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;
use std::rc::Rc;
use url_rewriting::Plan;

/// What all streams of a configuration share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Rc<Plan>,
    pub(crate) counters: Counters,
    /// None: nothing is fetched ahead.
    pub(crate) ahead: Option<Ahead>,
}

#[derive(Debug, Default)]
pub(crate) struct Root {
    shared: Option<Rc<Shared>>,
}

impl Context for Root {
    fn on_http_call_response(&mut self, token_id: u32, header_count: usize, body_bytes: usize, _: usize) {
        let Some((shared, ahead)) = self.ahead() else { return };
        if let Err(error) = ahead.ended(Token::of_callback(token_id), header_count, body_bytes, &shared.counters) {
            log::write(Level::Warn, &format!("url-rewrite: the answer to a request of ours: {error}"));
        }
        ahead.send(&shared.counters);
    }
}

impl Root {
    fn ahead(&self) -> Option<(&Shared, &Ahead)> {
        let shared = self.shared.as_ref()?;
        Some((shared, shared.ahead.as_ref()?))
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let read = body::read(Buffer::PluginConfiguration, size).map_err(|error| format!("unreadable: {error}"));
        let plan = read.and_then(|json| Plan::from_json(&json).map_err(|error| error.to_string()));
        match plan {
            Ok(plan) => {
                let (counters, missing) = Counters::define();
                for name in missing {
                    log::write(Level::Warn, &format!("url-rewrite: the proxy refused the metric {name}"));
                }
                self.shared = Some(Rc::new(Shared { ahead: Ahead::new(&plan), plan, counters }));
                true
            }
            Err(message) => {
                log::write(Level::Error, &message);
                false
            }
        }
    }

    fn on_tick(&mut self) {
        // A tick too many costs nothing.
        let _ = timer::stop();
        if let Some((shared, ahead)) = self.ahead() {
            ahead.send(&shared.counters);
        }
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream::new(self.shared.clone())))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
