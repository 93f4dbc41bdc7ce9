//! The fields of a link on the command line: the flags that set and clear them, their place in the
//! body of a request, and how they are shown.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use dto::{Flag, LinkFields, NewSocialPreview, Number, Patch, Time};
use serde_json::Value;

use crate::{
    args::extra_path_values,
    table::{pairs, text},
};

/// The fields that a create and an edit can set.
#[derive(Clone, Debug, Args)]
pub struct LinkSetters {
    /// Tag of the link; can be repeated. An edit replaces all tags of the link.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Title of the link.
    #[arg(long)]
    pub title: Option<String>,
    /// Description of the link.
    #[arg(long)]
    pub description: Option<String>,
    /// Time from which the link redirects: 2026-11-22T10:00:00+00:00, or a date. Without an offset
    /// or a zone such as [Europe/Berlin] it is in the server's time zone.
    #[arg(long, value_name = "TIME")]
    pub valid_since: Option<String>,
    /// Time until which the link redirects, in the same form.
    #[arg(long, value_name = "TIME")]
    pub valid_until: Option<String>,
    /// Maximum number of visits.
    #[arg(long, value_name = "COUNT")]
    pub max_visits: Option<u64>,
    /// Status of the link's redirects, instead of the server's.
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(["301", "302", "307", "308"]).try_map(|text| text.parse::<u16>()))]
    pub redirect_status: Option<u16>,
    /// What a path behind the link's name does, such as /42 in /issue/42. Defaults to what its
    /// domain says.
    #[arg(long, value_name = "WHAT", value_parser = extra_path_values())]
    pub extra_path: Option<String>,
    /// URL for visitors once the link has expired or its visits are used up, instead of that of its
    /// domain.
    #[arg(long, value_name = "URL")]
    pub expired_url: Option<String>,
    /// Title of the preview that chats and social networks show for the link. An edit replaces the
    /// whole preview with the values of the three flags.
    #[arg(long, value_name = "TEXT")]
    pub preview_title: Option<String>,
    /// Description of the preview.
    #[arg(long, value_name = "TEXT")]
    pub preview_description: Option<String>,
    /// URL of the picture of the preview.
    #[arg(long, value_name = "URL")]
    pub preview_image: Option<String>,
    /// Let search engines list the link.
    #[arg(long)]
    pub crawlable: bool,
    /// Do not forward the query of the short URL to the target.
    #[arg(long)]
    pub no_forward_query: bool,
    /// File whose first line is the password of the link; - for the standard input.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// Changes that only an edit can make: clearing a field, or turning a switch back.
#[derive(Clone, Debug, Args)]
pub struct LinkClears {
    /// Remove all tags.
    #[arg(long, conflicts_with = "tag")]
    pub no_tags: bool,
    /// Remove the title.
    #[arg(long, conflicts_with = "title")]
    pub no_title: bool,
    /// Remove the description.
    #[arg(long, conflicts_with = "description")]
    pub no_description: bool,
    /// Remove the start time.
    #[arg(long, conflicts_with = "valid_since")]
    pub no_valid_since: bool,
    /// Remove the end time.
    #[arg(long, conflicts_with = "valid_until")]
    pub no_valid_until: bool,
    /// Remove the visit limit.
    #[arg(long, conflicts_with = "max_visits")]
    pub no_max_visits: bool,
    /// Use the server's redirect status.
    #[arg(long, conflicts_with = "redirect_status")]
    pub no_redirect_status: bool,
    /// Let a path behind the link's name do what its domain says.
    #[arg(long, conflicts_with = "extra_path")]
    pub no_extra_path: bool,
    /// Lead visitors where the domain says once the link has expired.
    #[arg(long, conflicts_with = "expired_url")]
    pub no_expired_url: bool,
    /// Let chats and social networks show the preview of the target.
    #[arg(long, conflicts_with_all = ["preview_title", "preview_description", "preview_image"])]
    pub no_preview: bool,
    /// Remove the password.
    #[arg(long, conflicts_with = "password_file")]
    pub no_password: bool,
    /// Keep search engines from listing the link.
    #[arg(long, conflicts_with = "crawlable")]
    pub no_crawlable: bool,
    /// Forward the query of the short URL to the target.
    #[arg(long, conflicts_with = "no_forward_query")]
    pub forward_query: bool,
    /// Let the link redirect again.
    #[arg(long)]
    pub enable: bool,
    /// Stop the link from redirecting.
    #[arg(long, conflicts_with = "enable")]
    pub disable: bool,
}

/// The fields that an edit changes.
#[derive(Clone, Debug, Args)]
pub struct LinkEdits {
    /// New URL that the link redirects to.
    #[arg(long, value_name = "URL")]
    pub long_url: Option<String>,
    #[command(flatten)]
    pub setters: LinkSetters,
    #[command(flatten)]
    pub clears: LinkClears,
}

impl LinkEdits {
    /// Returns the fields as a body has them: it clears some with null, and leaves absent ones
    /// unchanged.
    pub(super) fn fields(&self, password: Option<String>) -> LinkFields {
        let mut edit = self.setters.fields(password);
        edit.long_url = self.long_url.clone().into();
        self.clears.apply_to(&mut edit);
        edit
    }
}

impl LinkSetters {
    /// Returns the preview that the flags set, if one of them is given.
    fn preview(&self) -> Option<NewSocialPreview> {
        let preview = NewSocialPreview {
            title: self.preview_title.clone(),
            description: self.preview_description.clone(),
            image: self.preview_image.clone(),
        };
        (preview != NewSocialPreview::default()).then_some(preview)
    }

    /// Returns the fields that the flags set, as a body has them.
    pub(super) fn fields(&self, password: Option<String>) -> LinkFields {
        LinkFields {
            tags: Some(self.tag.clone()).filter(|tags| !tags.is_empty()).into(),
            title: self.title.clone().into(),
            description: self.description.clone().into(),
            valid_since: self.valid_since.clone().map(Time).into(),
            valid_until: self.valid_until.clone().map(Time).into(),
            max_visits: self.max_visits.map(Number).into(),
            redirect_status: self.redirect_status.map(|status| Number(status.into())).into(),
            extra_path: self.extra_path.clone().into(),
            expired_url: self.expired_url.clone().into(),
            preview: self.preview().into(),
            crawlable: self.crawlable.then_some(Flag(true)).into(),
            forward_query: self.no_forward_query.then_some(Flag(false)).into(),
            password: password.into(),
            ..LinkFields::default()
        }
    }
}

impl LinkClears {
    /// Clears fields of an edit with null, and turns switches back.
    fn apply_to(&self, edit: &mut LinkFields) {
        clear(&mut edit.title, self.no_title);
        clear(&mut edit.description, self.no_description);
        clear(&mut edit.valid_since, self.no_valid_since);
        clear(&mut edit.valid_until, self.no_valid_until);
        clear(&mut edit.max_visits, self.no_max_visits);
        clear(&mut edit.redirect_status, self.no_redirect_status);
        clear(&mut edit.extra_path, self.no_extra_path);
        clear(&mut edit.expired_url, self.no_expired_url);
        clear(&mut edit.preview, self.no_preview);
        clear(&mut edit.password, self.no_password);
        if self.no_tags {
            edit.tags = Patch::Set(Vec::new());
        }
        if self.no_crawlable {
            edit.crawlable = Patch::Set(Flag(false));
        }
        if self.forward_query {
            edit.forward_query = Patch::Set(Flag(true));
        }
        if self.enable || self.disable {
            edit.enabled = Patch::Set(Flag(self.enable));
        }
    }
}

fn clear<T>(field: &mut Patch<T>, is_cleared: bool) {
    if is_cleared {
        *field = Patch::Null;
    }
}

/// Formats a link as a table of two columns. Fields without a value are left out.
pub(super) fn shown(link: &Value) -> String {
    let (meta, visits) = (&link["meta"], &link["visitsSummary"]);
    pairs(&[
        ("short URL", text(&link["shortUrl"])),
        ("code", text(&link["shortCode"])),
        ("domain", text(&link["domain"])),
        ("external id", text(&link["externalId"])),
        ("long URL", text(&link["longUrl"])),
        ("title", text(&link["title"])),
        ("description", text(&link["description"])),
        ("tags", text(&link["tags"])),
        ("created", text(&link["dateCreated"])),
        ("created by", text(&link["createdBy"])),
        ("edited", text(&link["editedAt"])),
        ("edited by", text(&link["editedBy"])),
        ("deleted", text(&link["deletedAt"])),
        ("taken down", text(&link["blocked"]["date"])),
        ("reason", text(&link["blocked"]["reason"])),
        ("valid since", text(&meta["validSince"])),
        ("valid until", text(&meta["validUntil"])),
        ("max visits", text(&meta["maxVisits"])),
        ("visits", text(&visits["total"])),
        ("last visit", text(&link["lastVisit"])),
        ("enabled", text(&link["enabled"])),
        ("crawlable", text(&link["crawlable"])),
        ("forwards query", text(&link["forwardQuery"])),
        ("redirect status", text(&link["redirectStatus"])),
        ("extra path", text(&link["extraPath"])),
        ("expired URL", text(&link["expiredUrl"])),
        ("preview title", text(&link["preview"]["title"])),
        ("preview text", text(&link["preview"]["description"])),
        ("preview image", text(&link["preview"]["image"])),
        ("password", text(&link["hasPassword"])),
        ("redirect rules", text(&link["hasRedirectRules"])),
        ("version", text(&link["version"])),
    ])
}
