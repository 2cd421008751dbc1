//! Codes the value of a field that differs from the base: a recent value, a common value, or a new one.

use std::borrow::Cow;

use crate::block::CRUMB;
use crate::coder::{Coder, number, salt, signed};
use crate::date;
use crate::error::DecodeError;
use crate::exchange::{Exchange, Hit, Side};
use crate::hash::{self, mix};
use crate::limits;
use crate::policy::{Form, Kin, Policy, Scope};
use crate::scene::Scene;
use crate::spell::Speller;
use crate::text::{self, Subject};

/// 1 January 2026: the origin of dates if no other date is known.
const EPOCH: u64 = 1_767_225_600;

/// The field that a value belongs to, and the field of the base block that it replaces.
pub(crate) struct Place<'a> {
    /// Hash of the name.
    pub(crate) name: u32,
    pub(crate) policy: Policy,
    /// The base's value, if the field changes and its policy allows the use of that value.
    pub(crate) base: Option<&'a [u8]>,
}

/// Codes a value and returns it.
pub(crate) fn code<C: Coder>(
    coder: &mut C,
    scene: &mut Scene<'_>,
    place: &Place<'_>,
    value: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let kind = place.name;
    let recent = recent(scene, place);
    if !recent.is_empty() {
        let rank = recent.rank_of(value);
        let few = u32::try_from(recent.len().min(4)).unwrap_or(0);
        let changed = u32::from(place.base.is_some());
        let contexts = [mix(kind ^ salt::RECENT, few * 2 + changed), mix(salt::RECENT, few * 2 + changed)];
        if coder.bit(&contexts, rank.is_some()) {
            let rank = number(coder, mix(kind, salt::RECENT_RANK), rank_number(rank));
            return recent.at(rank).map(Cow::into_owned);
        }
    }
    let dictionary = scene.dictionary;
    let common = dictionary.values(kind);
    if !common.is_empty() {
        let rank = common.iter().position(|known| *known == value);
        if coder.bit(&[mix(kind, salt::COMMON), salt::COMMON], rank.is_some()) {
            let rank = number(coder, mix(kind, salt::COMMON_RANK), rank_number(rank));
            return at(common, rank);
        }
    }
    let mut out = Vec::new();
    match place.policy.form {
        Form::Date => {
            let seconds = date::parse(value);
            if coder.bit(&[mix(kind, salt::IS_DATE), salt::IS_DATE], seconds.is_some()) {
                let seconds = date_value(coder, scene, place, seconds.unwrap_or(0));
                date::format(seconds, &mut out);
                return Ok(out);
            }
        }
        Form::Number => {
            let decimal = parse_number(value);
            if coder.bit(&[mix(kind, salt::IS_NUMBER), salt::IS_NUMBER], decimal.is_some()) {
                let decimal = number(coder, mix(kind, salt::DECIMAL), decimal.unwrap_or(0));
                return Ok(decimal.to_string().into_bytes());
            }
        }
        Form::Text | Form::Url | Form::Crumb | Form::SetCookie | Form::Whole => {}
    }
    let subject = Subject { form: place.policy.form, kind };
    let bases = usize::from(place.base.is_some());
    if bases + recent.len() > 0 {
        let best = best_model(subject.form, place.base, &recent, value);
        if coder.bit(&[mix(kind, salt::MODEL), salt::MODEL], best.is_some()) {
            let rank = number(coder, mix(kind, salt::MODEL_RANK), rank_number(best));
            let model = match (place.base, rank) {
                (Some(base), 0) => Cow::Borrowed(base),
                (Some(_), rank) => recent.at(rank - 1)?,
                (None, rank) => recent.at(rank)?,
            };
            text::differ(coder, subject, &model, value, &mut scene.budget, &mut out)?;
            return Ok(out);
        }
    }
    text::spell(coder, &mut Speller::new(kind), subject, value, &mut scene.budget, &mut out)?;
    Ok(out)
}

/// Returns the known value with the fewest differences from this one: the base's value or a recent one.
fn best_model(form: Form, base: Option<&[u8]>, recent: &Found<'_>, value: &[u8]) -> Option<usize> {
    // No model suits an empty value. The value is also empty while the decoder reads it, and then no model need be
    // looked at.
    if value.is_empty() {
        return None;
    }
    let recent: Vec<Cow<'_, [u8]>> = recent.values.iter().map(Known::text).collect();
    let models: Vec<&[u8]> = base.into_iter().chain(recent.iter().map(Cow::as_ref)).collect();
    text::best_model(form, &models, value)
}

fn rank_number(rank: Option<usize>) -> u64 {
    rank.and_then(|rank| u64::try_from(rank).ok()).unwrap_or(0)
}

fn at<T: Clone>(list: &[T], rank: u64) -> Result<T, DecodeError> {
    let known = usize::try_from(rank).ok().and_then(|rank| list.get(rank));
    known.cloned().ok_or(DecodeError::Malformed("points past the end of a list"))
}

/// Returns a number that formats back to exactly `value`.
fn parse_number(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let number: u64 = text.parse().ok()?;
    (number < 1 << 38 && number.to_string() == text).then_some(number)
}

/// Codes the seconds of a date as the difference from the nearest known date: this message's own date, the last date
/// seen, or [`EPOCH`].
fn date_value<C: Coder>(coder: &mut C, scene: &Scene<'_>, place: &Place<'_>, seconds: u64) -> u64 {
    let kind = place.name;
    let own = scene.date;
    let origin = own.or_else(|| scene.last_date()).unwrap_or(EPOCH);
    let known = u32::from(own.is_some()) * 2 + u32::from(scene.last_date().is_some());
    if let (Some(own), Some(base), Some(base_date)) = (own, place.base.and_then(date::parse), scene.base_date()) {
        let moved = own.saturating_add(base).saturating_sub(base_date);
        if coder.bit(&[mix(kind, salt::SAME_OFFSET)], moved == seconds) {
            return moved;
        }
    }
    if let (Some(own), Some(age)) = (own, scene.max_age) {
        let end = own.saturating_add(age);
        if coder.bit(&[mix(kind, salt::MAX_AGE)], end == seconds) {
            return end;
        }
    }
    let offset = i64::try_from(seconds).unwrap_or(0) - i64::try_from(origin).unwrap_or(0);
    let offset = signed(coder, mix(kind ^ salt::SECONDS, known), offset);
    origin.saturating_add_signed(offset).min(date::LAST_SECOND)
}

/// Returns the earlier values that a message may refer to, latest first and each once.
fn recent<'a>(scene: &Scene<'a>, place: &Place<'_>) -> Found<'a> {
    let room = limits::RECENT_VALUES;
    let base = place.base.map(hash::bytes);
    let mut found = Found { base, hashes: Vec::with_capacity(room), values: Vec::with_capacity(room) };
    let site = match (place.policy.scope, scene.site.as_deref()) {
        (Scope::Client, _) => None,
        (Scope::Site, Some(site)) => Some(site),
        (Scope::Site, None) => return found,
    };
    let crumbs = [hash::bytes(b"cookie"), hash::bytes(CRUMB)];
    let names = if crumbs.contains(&place.name) { crumbs } else { [place.name; 2] };
    for hit in scene.view.search(scene.side, names) {
        if found.is_new(hit.value) && hit.may_be_lent_to(site) {
            found.add(hit.value, Known::Past(hit));
            if found.is_full() {
                return found;
            }
        }
    }
    let name = match place.policy.kin {
        Kin::None => return found,
        Kin::RequestUrls => {
            for past in scene.view.newest() {
                if found.is_full() {
                    break;
                }
                let Some(url) = url(past.exchange()) else { continue };
                let hash = hash::pieces(url);
                if found.is_new(hash) {
                    found.add(hash, Known::Made(Cow::Owned(url.concat())));
                }
            }
            return found;
        }
        Kin::SetCookies => hash::bytes(b"set-cookie"),
        Kin::Etags => hash::bytes(b"etag"),
        Kin::LastModified => hash::bytes(b"last-modified"),
    };
    for hit in scene.view.search(Side::Response, [name; 2]) {
        if found.is_full() {
            break;
        }
        if !hit.may_be_lent_to(site) {
            continue;
        }
        let value = match place.policy.kin {
            Kin::SetCookies => hit.text().split(|byte| *byte == b';').next().unwrap_or_default(),
            _ => hit.text(),
        };
        found.add(hash::bytes(value), Known::Made(Cow::Borrowed(value)));
    }
    found
}

/// A value, or its place. Most candidates are never read, and each one that is may cost a cache miss.
#[derive(Debug, Clone)]
enum Known<'a> {
    Past(Hit<'a>),
    Made(Cow<'a, [u8]>),
}

impl<'a> Known<'a> {
    fn text(&self) -> Cow<'a, [u8]> {
        match self {
            Self::Past(hit) => Cow::Borrowed(hit.text()),
            Self::Made(value) => value.clone(),
        }
    }
}

/// Distinct values in the order of the search.
struct Found<'a> {
    /// Hash of the base's value, which the search skips because the base already offers it.
    base: Option<u32>,
    hashes: Vec<u32>,
    values: Vec<Known<'a>>,
}

impl<'a> Found<'a> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value with this rank.
    fn at(&self, rank: u64) -> Result<Cow<'a, [u8]>, DecodeError> {
        at(&self.values, rank).map(|known| known.text())
    }

    fn rank_of(&self, value: &[u8]) -> Option<usize> {
        let hash = hash::bytes(value);
        let rank = self.hashes.iter().position(|known| *known == hash)?;
        self.values.get(rank).filter(|known| *known.text() == *value).map(|_| rank)
    }

    fn is_full(&self) -> bool {
        self.values.len() >= limits::RECENT_VALUES
    }

    fn is_new(&self, hash: u32) -> bool {
        !self.is_full() && self.base != Some(hash) && !self.hashes.contains(&hash)
    }

    fn add(&mut self, hash: u32, value: Known<'a>) {
        if self.is_new(hash) {
            self.hashes.push(hash);
            self.values.push(value);
        }
    }
}

/// Returns, in pieces, the URL that a page fetched by this exchange would send as its `Referer`.
fn url(exchange: &Exchange) -> Option<[&[u8]; 4]> {
    let request = exchange.block(Side::Request);
    let authority = request.get(b":authority")?;
    Some([request.get(b":scheme")?, b"://", authority, request.get(b":path")?])
}
