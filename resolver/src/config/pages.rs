//! The settings of the pages.

use std::{fs, path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cli::{Error, args::Database};
use pages::Theme;
use qr::Logo;

use super::{Config, entries::Entries};

/// Maximum length of a logo, in bytes. It is part of every page.
const LOGO_BYTES: u64 = 8 * 1024;
const LOGO_EXPECTED: &str = "the logo must be an SVG, PNG, WebP or JPEG file of at most 8 KiB";

#[derive(Clone, Debug)]
pub(crate) struct PageSettings {
    /// Whether visitors may create links without an API key.
    pub(crate) public_create: bool,
    pub(crate) theme: Theme,
    /// The theme's logo, for QR codes.
    pub(crate) qr_logo: Option<Arc<Logo>>,
    /// Whether lists show the icons of hosts that links lead to.
    pub(crate) icons: bool,
}

impl Config {
    pub(super) fn check_pages(&self) -> Result<PageSettings, Error> {
        // A proxy on the same machine may open a loopback address to the world.
        let is_private = self.issuer.is_empty()
            && matches!(self.database.database, Database::Sqlite(_))
            && self.listen.ip().is_loopback()
            && self.public_url.is_none()
            && self.trusted_proxies.is_empty();
        let given = Entries::of("--theme", &["name", "logo", "colour", "footer", "icons"], &self.theme)?;
        let (theme, qr_logo) = check_theme(&given)?;
        let public_create = self.public_create.unwrap_or(is_private);
        let icons = given.switch("icons")?.unwrap_or(false);
        Ok(PageSettings { public_create, theme, qr_logo, icons })
    }
}

fn check_theme(given: &Entries<'_>) -> Result<(Theme, Option<Arc<Logo>>), Error> {
    let (logo, qr_logo) = given.parse("logo", logo)?.unzip();
    let accent = given.parse("colour", Theme::read_accent)?;
    let name = given.parse("name", Theme::check_name)?.unwrap_or(Theme::default().name);
    let theme = Theme { name, logo, accent, footer: given.parse("footer", Theme::check_footer)? };
    Ok((theme, qr_logo.map(Arc::new)))
}

/// Reads a logo, and returns it as a `data:` URL and for QR codes.
fn logo(path: &str) -> Result<(String, Logo), String> {
    let kind = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("svg") => "svg+xml",
        Some("png") => "png",
        Some("webp") => "webp",
        Some("jpg" | "jpeg") => "jpeg",
        _ => return Err(LOGO_EXPECTED.to_owned()),
    };
    if fs::metadata(path).map_err(|error| error.to_string())?.len() > LOGO_BYTES {
        return Err(LOGO_EXPECTED.to_owned());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let url = format!("data:image/{kind};base64,{}", STANDARD.encode(&bytes));
    let png = (kind == "png").then_some(&*bytes);
    Ok((url.clone(), Logo::new(url, png)))
}
