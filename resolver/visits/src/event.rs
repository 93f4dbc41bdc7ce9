//! Events: what is recorded of a visit while it is answered.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use codes::LinkId;
use links::DomainId;

use crate::Outcome;

// Maximum lengths of recorded texts, in bytes.
pub(crate) const USER_AGENT_MAX: usize = 512;
const REFERRER_MAX: usize = 1_024;
const LANGUAGES_MAX: usize = 64;
/// Maximum length of the recorded path with its query, and of the recorded target, in bytes.
pub const URL_MAX: usize = 2_048;
/// Maximum length of an encoded event, in bytes.
pub(crate) const EVENT_MAX: usize = FIXED + 16 + USER_AGENT_MAX + REFERRER_MAX + LANGUAGES_MAX + 2 * URL_MAX;

/// Length of the fields before the address, in bytes.
const FIXED: usize = 2 + 1 + 1 + 4 + 8 + 4 + 1 + 2 + 2 + 1 + 2 + 2 + 2;
const OPTED_OUT: u8 = 1;
const IPV6: u8 = 2;
const NAMED_BY_COUNTRY: u8 = 4;

/// A visit as it is recorded. Texts are bytes of the request; longer ones are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When it was, in microseconds since 1970.
    pub at: i64,
    /// Outcome of the visit.
    pub outcome: Outcome,
    /// The link that was found, also if it did not redirect.
    pub link: Option<LinkId>,
    /// The domain that was visited.
    pub domain: DomainId,
    /// The redirect rule that matched, counted from 1; 0 for none.
    pub rule: u8,
    /// The visitor's address.
    pub client: IpAddr,
    /// The visitor's country as a trusted proxy names it: two letters.
    pub country: Option<[u8; 2]>,
    /// Whether the visitor asked not to be tracked (`DNT: 1` or `Sec-GPC: 1`) and the operator
    /// respects it.
    pub is_opted_out: bool,
    /// `User-Agent` header; empty if absent.
    pub user_agent: &'a [u8],
    /// `Referer` header; empty if absent.
    pub referrer: &'a [u8],
    /// `Accept-Language` header; empty if absent.
    pub languages: &'a [u8],
    /// The requested path and query, if they are more than the link's code; otherwise empty.
    pub request: &'a [u8],
    /// Where the visitor was redirected to, if not to the link's own target; otherwise empty.
    pub target: &'a [u8],
}

/// Bytes that are not an encoded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an encoded visit")]
pub struct Malformed;

impl<'a> Event<'a> {
    /// Cuts the texts to their maximum lengths.
    #[inline]
    pub fn cut(mut self) -> Self {
        let cut = |text: &mut &'a [u8], most: usize| *text = &text[..text.len().min(most)];
        cut(&mut self.user_agent, USER_AGENT_MAX);
        cut(&mut self.referrer, REFERRER_MAX);
        cut(&mut self.languages, LANGUAGES_MAX);
        cut(&mut self.request, URL_MAX);
        cut(&mut self.target, URL_MAX);
        self
    }

    /// Returns the encoded length of an event whose texts were cut.
    #[inline]
    pub(crate) fn encoded_len(&self) -> usize {
        let address = if self.client.is_ipv4() { 4 } else { 16 };
        let country = if self.country.is_some() { 2 } else { 0 };
        FIXED + address + country + self.texts().iter().map(|text| text.len()).sum::<usize>()
    }

    fn texts(&self) -> [&'a [u8]; 5] {
        [self.user_agent, self.referrer, self.languages, self.request, self.target]
    }

    /// Writes the event to the beginning of `out`, which has at least
    /// [`encoded_len`](Self::encoded_len) bytes. `base` is the time that the event's own is
    /// relative to, at most an hour earlier.
    #[inline]
    pub(crate) fn encode(&self, base: i64, mut out: &mut [u8]) {
        let mut put = |bytes: &[u8]| {
            let place = out.split_off_mut(..bytes.len()).expect("there is room for the event");
            place.copy_from_slice(bytes);
        };
        let len = |text: &[u8]| u16::try_from(text.len()).expect("texts were cut below 64 KiB").to_le_bytes();
        let whole = u16::try_from(self.encoded_len()).expect("an event has at most EVENT_MAX bytes");
        let offset = u32::try_from(self.at.saturating_sub(base)).unwrap_or(u32::MAX);
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let bits = bit(self.is_opted_out, OPTED_OUT)
            | bit(self.client.is_ipv6(), IPV6)
            | bit(self.country.is_some(), NAMED_BY_COUNTRY);
        put(&whole.to_le_bytes());
        put(&[self.outcome.number(), bits]);
        put(&offset.to_le_bytes());
        put(&self.link.map_or(0, LinkId::get).to_le_bytes());
        put(&u32::try_from(self.domain.get()).unwrap_or(0).to_le_bytes());
        put(&[self.rule]);
        put(&len(self.user_agent));
        put(&len(self.referrer));
        put(&[u8::try_from(self.languages.len()).expect("languages were cut to 64 bytes")]);
        put(&len(self.request));
        put(&len(self.target));
        // The length of a cookie, which earlier releases recorded.
        put(&[0; 2]);
        match self.client {
            IpAddr::V4(address) => put(&address.octets()),
            IpAddr::V6(address) => put(&address.octets()),
        }
        if let Some(country) = &self.country {
            put(country);
        }
        self.texts().into_iter().for_each(put);
    }

    /// Reads the first event of `bytes`, and returns it with the bytes after it.
    pub(crate) fn decode(base: i64, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (whole, _) = bytes.split_first_chunk().ok_or(Malformed)?;
        let (event, rest) =
            bytes.split_at_checked(usize::from(u16::from_le_bytes(*whole))).ok_or(Malformed)?;
        let mut fields = event.get(2..).ok_or(Malformed)?;
        let [outcome, bits] = array(&mut fields)?;
        let offset = u32::from_le_bytes(array(&mut fields)?);
        let link = i64::from_le_bytes(array(&mut fields)?);
        let domain = u32::from_le_bytes(array(&mut fields)?);
        let [rule] = array(&mut fields)?;
        let user_agent = usize::from(u16::from_le_bytes(array(&mut fields)?));
        let referrer = usize::from(u16::from_le_bytes(array(&mut fields)?));
        let [languages] = array(&mut fields)?;
        let request = usize::from(u16::from_le_bytes(array(&mut fields)?));
        let target = usize::from(u16::from_le_bytes(array(&mut fields)?));
        let cookie = usize::from(u16::from_le_bytes(array(&mut fields)?));
        let client = if bits & IPV6 == 0 {
            IpAddr::V4(Ipv4Addr::from(array::<4>(&mut fields)?))
        } else {
            IpAddr::V6(Ipv6Addr::from(array::<16>(&mut fields)?))
        };
        let country = (bits & NAMED_BY_COUNTRY != 0).then(|| array(&mut fields)).transpose()?;
        let event = Self {
            at: base.checked_add(i64::from(offset)).ok_or(Malformed)?,
            outcome: Outcome::from_stored(outcome).ok_or(Malformed)?,
            link: (link != 0).then(|| LinkId::from_stored(link)),
            domain: DomainId::from_stored(i64::from(domain)),
            rule,
            client,
            country,
            is_opted_out: bits & OPTED_OUT != 0,
            user_agent: take(&mut fields, user_agent)?,
            referrer: take(&mut fields, referrer)?,
            languages: take(&mut fields, usize::from(languages))?,
            request: take(&mut fields, request)?,
            target: take(&mut fields, target)?,
        };
        take(&mut fields, cookie)?;
        if fields.is_empty() { Ok((event, rest)) } else { Err(Malformed) }
    }
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
    bytes.split_off(..len).ok_or(Malformed)
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (taken, rest) = bytes.split_first_chunk::<N>().ok_or(Malformed)?;
    *bytes = rest;
    Ok(*taken)
}
