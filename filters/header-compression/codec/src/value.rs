//! The value of a field that does not stand where it stood: one seen recently, a common one, or a new one.

use std::borrow::Cow;

use crate::block::CRUMB;
use crate::coder::{Coder, number, salt, signed};
use crate::date;
use crate::error::DecodeError;
use crate::exchange::{Exchange, Side};
use crate::hash::{self, mix};
use crate::limits;
use crate::policy::{Form, Kin, Policy, Scope};
use crate::spell::Speller;
use crate::text::{self, Subject};
use crate::walk::Scene;

/// 1 January 2026: where dates are counted from if no other date is known.
const EPOCH: u64 = 1_767_225_600;

/// The field a value is for, and the one of the base block it takes the place of.
pub(crate) struct Place<'a> {
    /// Hash of the name.
    pub(crate) name: u32,
    pub(crate) policy: Policy,
    /// The base's value, if the field changes and this may be looked at.
    pub(crate) base: Option<&'a [u8]>,
}

/// A value. Returns it.
pub(crate) fn code<C: Coder>(
    coder: &mut C,
    scene: &mut Scene<'_>,
    place: &Place<'_>,
    value: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let kind = place.name;
    let recent = recent(scene, place);
    if !recent.is_empty() {
        let rank = recent.iter().position(|known| **known == *value);
        let few = u32::try_from(recent.len().min(4)).unwrap_or(0);
        let changed = u32::from(place.base.is_some());
        let contexts = [mix(kind ^ salt::RECENT, few * 2 + changed), mix(salt::RECENT, few * 2 + changed)];
        if coder.bit(&contexts, rank.is_some()) {
            let rank = number(coder, mix(kind, salt::RECENT_RANK), rank_number(rank));
            return at(&recent, rank).map(Cow::into_owned);
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
    let models: Vec<&[u8]> = place.base.into_iter().chain(recent.iter().map(Cow::as_ref)).collect();
    if !models.is_empty() {
        let best = text::best_model(subject.form, &models, value);
        if coder.bit(&[mix(kind, salt::MODEL), salt::MODEL], best.is_some()) {
            let rank = number(coder, mix(kind, salt::MODEL_RANK), rank_number(best));
            let model = at(&models, rank)?;
            text::differ(coder, subject, model, value, &mut scene.budget, &mut out)?;
            return Ok(out);
        }
    }
    text::spell(coder, &mut Speller::new(kind), subject, value, &mut scene.budget, &mut out)?;
    Ok(out)
}

fn rank_number(rank: Option<usize>) -> u64 {
    rank.and_then(|rank| u64::try_from(rank).ok()).unwrap_or(0)
}

fn at<T: Clone>(list: &[T], rank: u64) -> Result<T, DecodeError> {
    let known = usize::try_from(rank).ok().and_then(|rank| list.get(rank));
    known.cloned().ok_or(DecodeError::Malformed("points past the end of a list"))
}

/// A number that formatting gives back.
fn parse_number(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let number: u64 = text.parse().ok()?;
    (number < 1 << 38 && number.to_string() == text).then_some(number)
}

/// Seconds of a date, counted from what is nearest: this message's own date, the last one seen, or [`EPOCH`].
fn date_value<C: Coder>(coder: &mut C, scene: &Scene<'_>, place: &Place<'_>, seconds: u64) -> u64 {
    let kind = place.name;
    let own = scene.date;
    let origin = own.or(scene.last_date).unwrap_or(EPOCH);
    let known = u32::from(own.is_some()) * 2 + u32::from(scene.last_date.is_some());
    if let (Some(own), Some(base), Some(base_date)) = (own, place.base.and_then(date::parse), scene.base_date) {
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

/// Earlier values a message may point at, latest first, each once.
fn recent<'a>(scene: &Scene<'a>, place: &Place<'_>) -> Vec<Cow<'a, [u8]>> {
    let room = limits::RECENT_VALUES;
    let base = place.base.map(hash::bytes);
    let mut found = Found { base, hashes: Vec::with_capacity(room), values: Vec::with_capacity(room) };
    let site = match (place.policy.scope, scene.site.as_deref()) {
        (Scope::Client, _) => None,
        (Scope::Site, Some(site)) => Some((hash::bytes(site), site)),
        (Scope::Site, None) => return found.values,
    };
    let crumbs = [hash::bytes(b"cookie"), hash::bytes(CRUMB)];
    let names = if crumbs.contains(&place.name) { crumbs } else { [place.name; 2] };
    for hit in scene.view.search(scene.side, names) {
        if found.is_new(hit.value)
            && let Some(value) = hit.lend(site)
        {
            found.add(hit.value, Cow::Borrowed(value));
            if found.is_full() {
                return found.values;
            }
        }
    }
    let name = match place.policy.kin {
        Kin::None => return found.values,
        Kin::RequestUrls => {
            for past in scene.view.newest() {
                if let Some(url) = url(past.exchange()) {
                    found.add(hash::bytes(&url), Cow::Owned(url));
                }
            }
            return found.values;
        }
        Kin::SetCookies => hash::bytes(b"set-cookie"),
        Kin::Etags => hash::bytes(b"etag"),
        Kin::LastModified => hash::bytes(b"last-modified"),
    };
    for value in scene.view.search(Side::Response, [name; 2]).filter_map(|hit| hit.lend(site)) {
        let value = match place.policy.kin {
            Kin::SetCookies => value.split(|byte| *byte == b';').next().unwrap_or_default(),
            _ => value,
        };
        found.add(hash::bytes(value), Cow::Borrowed(value));
    }
    found.values
}

/// Distinct values as they are found.
struct Found<'a> {
    /// What need not be found, because the base has it.
    base: Option<u32>,
    hashes: Vec<u32>,
    values: Vec<Cow<'a, [u8]>>,
}

impl<'a> Found<'a> {
    fn is_full(&self) -> bool {
        self.values.len() >= limits::RECENT_VALUES
    }

    fn is_new(&self, hash: u32) -> bool {
        !self.is_full() && self.base != Some(hash) && !self.hashes.contains(&hash)
    }

    fn add(&mut self, hash: u32, value: Cow<'a, [u8]>) {
        if self.is_new(hash) {
            self.hashes.push(hash);
            self.values.push(value);
        }
    }
}

/// The URL that a page fetched by this exchange would send as its Referer.
fn url(exchange: &Exchange) -> Option<Vec<u8>> {
    let request = exchange.block(Side::Request);
    let authority = request.get(b":authority")?;
    Some([request.get(b":scheme")?, b"://", authority, request.get(b":path")?].concat())
}
