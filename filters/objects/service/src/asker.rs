//! Requests for missing bytes of a sliced object.

use std::ops::Range;
use std::sync::Arc;

use http_semantics::Fields;
use hyper::Method;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use object_rules::groups::Groups;
use object_rules::slices::{continues, storable_part, strong_tag};
use object_store::{Store, now_s};
use side_program::fields;

use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::request::{fields_of, for_run, host_of};
use crate::run::End;
use crate::sliced::Sliced;

/// Asks the origin on behalf of a client.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) origin: Arc<Origin>,
    pub(crate) store: Arc<Store>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) groups: Arc<Groups>,
    /// The client's request.
    pub(crate) client: Parts,
}

impl Asker {
    /// Requests bytes of an object. If the origin has another one by now, removes the stored one.
    ///
    /// # Errors
    /// The reason why the bytes cannot be had.
    pub(crate) async fn ask(&self, sliced: &Sliced, bytes: &Range<u64>) -> Result<Incoming, End> {
        let stored: Fields<'_> =
            sliced.fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
        let tag = strong_tag(&stored).unwrap_or_default();
        let sent_s = now_s();
        let Ok(response) = self.origin.ask(for_run(&self.client, bytes, tag)).await else { return Err(End::Origin) };
        let status = response.status();
        let came = fields(&Method::GET, Some(status.as_str()), response.headers());
        let came = self.groups.terms(host_of(&self.client), came);
        let is_same = continues(&stored, sliced.blocks().length, bytes, &came);
        let now_s = now_s();
        let is_for_all = || storable_part(&fields_of(&self.client), &came, now_s, now_s.saturating_sub(sent_s)).is_ok();
        if is_same && is_for_all() {
            return Ok(response.into_body());
        }
        // Other errors say nothing about the object.
        if !(status.is_success() || matches!(status.as_u16(), 404 | 410 | 416)) {
            return Err(End::Origin);
        }
        let (store, key, file) = (Arc::clone(&self.store), sliced.key, sliced.file.clone());
        let _ = tokio::task::spawn_blocking(move || store.remove_slices(key, &file)).await;
        Err(End::Changed)
    }
}
