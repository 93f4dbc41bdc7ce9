//! The links of a pack of QR codes for print: a page of a list, links by name, or the codes of a
//! reservation.
//!
//! 1. A pack has at most [`LINKS_MAX`] links, because it is made in memory.
//! 2. Without a page, all links have to fit, because an omission would go unnoticed.
//!    For the same reason, a link whose keyspace is unknown ends the call.
//! 3. Links are read a piece at a time, and only what a label needs is kept.
//! 4. A link that is named twice, perhaps in two spellings, is in the pack once.

use std::collections::HashSet;

use codes::Code;
use links::{DomainId, Link, LongUrl, api_key::Grant, scope::Scope};

use crate::{
    AppError, FieldErrors, LinkService, Reserved, authorize::require, find_link::LinkName,
    list_links::ListLinks,
};

/// Maximum number of links in a pack.
pub const LINKS_MAX: u64 = 1_000;

/// The links of a pack.
pub enum Selection {
    /// Those of a list, with the errors in its query.
    Listed(Box<ListLinks>, FieldErrors),
    /// Links by name.
    Named(Vec<LinkName>),
    /// The codes of a reservation, by its id.
    Reserved(String),
}

/// The page of a list, or of the codes of a reservation, that a pack has.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Its number, from 1.
    pub number: u64,
    /// The number of links on a page. A pack has at most [`LINKS_MAX`].
    pub per_page: u64,
}

/// The links that were found for a pack.
#[derive(Debug)]
pub struct PackLinks {
    /// The position of the first link in its list, from 1.
    pub first: u64,
    /// The links in the order of the list, or in which they were named.
    pub links: Vec<PackLink>,
}

/// What a pack shows of a link.
#[derive(Debug)]
pub struct PackLink {
    /// The domain on which it has its name.
    pub domain: DomainId,
    /// The code or slug.
    pub name: String,
    /// The long URL; `None` for a reserved code.
    pub long_url: Option<LongUrl>,
    /// The title, if it has one.
    pub title: Option<String>,
}

impl LinkService {
    /// Finds the links of a pack.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] for deleted links, for more names than a pack has links, and for a
    /// selection without a page that does not fit.
    pub async fn pack_links(
        &self,
        selection: Selection,
        page: Option<Page>,
        by: &Grant,
    ) -> Result<PackLinks, AppError> {
        require(by, Scope::Read)?;
        match selection {
            Selection::Listed(list, wrong) => self.listed_for_pack(*list, wrong, page, by).await,
            Selection::Named(names) => self.named_for_pack(&names, by).await,
            Selection::Reserved(id) => self.reserved_for_pack(&id, page, by).await,
        }
    }

    async fn listed_for_pack(
        &self,
        mut list: ListLinks,
        wrong: FieldErrors,
        page: Option<Page>,
        by: &Grant,
    ) -> Result<PackLinks, AppError> {
        if list.filter.deleted {
            let expected = "expected false, because deleted links do not redirect";
            return Err(AppError::invalid("deleted", expected));
        }
        let Page { number, per_page } = bounded(page);
        (list.filter.page, list.filter.per_page) = (number, Some(per_page));
        let listed = self.list_links(list, wrong, by).await?;
        check_whole(page, listed.total)?;
        let mut links = Vec::with_capacity(listed.entries.len());
        for piece in links::pieces(&listed.entries) {
            let piece = self.weigh(piece, by).await?;
            for piece in links::pieces(&piece) {
                let records = self.read_piece(&listed, piece, by).await?;
                for record in &records {
                    links.push(self.pack_link(&record.link)?);
                }
            }
        }
        Ok(PackLinks { first: first(listed.page, listed.per_page), links })
    }

    async fn named_for_pack(&self, names: &[LinkName], by: &Grant) -> Result<PackLinks, AppError> {
        if names.len() as u64 > LINKS_MAX {
            return Err(AppError::invalid("shortCodes[]", format!("expected at most {LINKS_MAX} links")));
        }
        let (mut links, mut seen) = (Vec::with_capacity(names.len()), HashSet::new());
        for name in names {
            let link = self.find_link(name, by).await?;
            if seen.insert(link.id) {
                links.push(self.pack_link(&link)?);
            }
        }
        Ok(PackLinks { first: 1, links })
    }

    async fn reserved_for_pack(
        &self,
        id: &str,
        page: Option<Page>,
        by: &Grant,
    ) -> Result<PackLinks, AppError> {
        let Reserved { codes, .. } = self.reservation(id, by).await?;
        check_whole(page, codes.len() as u64)?;
        let Page { number, per_page } = bounded(page);
        let first = first(number, per_page);
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let codes = codes.iter().skip(count(first - 1)).take(count(per_page));
        Ok(PackLinks { first, links: codes.map(reserved).collect() })
    }

    fn pack_link(&self, link: &Link) -> Result<PackLink, AppError> {
        Ok(PackLink {
            domain: link.domain(),
            // Without a name if the keyspace is new, until this process knows it.
            name: self.lookup.name_of(link).ok_or(AppError::Unavailable)?,
            long_url: Some(link.long_url.clone()),
            title: link.title.clone(),
        })
    }
}

fn reserved(code: &Code) -> PackLink {
    PackLink { domain: DomainId::DEFAULT, name: code.to_string(), long_url: None, title: None }
}

/// Returns a page that a pack can have; the first one if none is given.
fn bounded(page: Option<Page>) -> Page {
    let Page { number, per_page } = page.unwrap_or(Page { number: 1, per_page: LINKS_MAX });
    Page { number: number.max(1), per_page: per_page.min(LINKS_MAX) }
}

/// Returns the position of the first link on a page.
fn first(number: u64, per_page: u64) -> u64 {
    (number - 1).saturating_mul(per_page).saturating_add(1)
}

fn check_whole(page: Option<Page>, total: u64) -> Result<(), AppError> {
    if page.is_some() || total <= LINKS_MAX {
        return Ok(());
    }
    let expected =
        format!("expected the number of a page: a pack has at most {LINKS_MAX} links, and there are {total}");
    Err(AppError::invalid("page", expected))
}
