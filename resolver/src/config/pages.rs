//! The settings of the pages.

use std::{fs, path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cli::{Error, args::Database};
use pages::{Theme, ThemeError};
use qr::Logo;

use super::{Config, entries::Entries};

/// Maximum length of a logo, in bytes. It is part of every page.
const LOGO_BYTES: u64 = 8 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct PageSettings {
    /// Whether visitors may create links without an API key.
    pub(crate) public_create: bool,
    pub(crate) theme: Theme,
    /// The theme's logo, for QR codes.
    pub(crate) qr_logo: Option<Arc<Logo>>,
}

impl Config {
    pub(super) fn check_pages(&self) -> Result<PageSettings, Error> {
        // A proxy on the same machine may open a loopback address to the world.
        let is_private = self.issuer.is_empty()
            && matches!(self.database.database, Database::Sqlite(_))
            && self.listen.ip().is_loopback()
            && self.public_url.is_none()
            && self.trusted_proxies.is_empty();
        let (theme, qr_logo) = self.check_theme()?;
        let public_create = self.public_create.unwrap_or(is_private);
        Ok(PageSettings { public_create, theme, qr_logo })
    }

    fn check_theme(&self) -> Result<(Theme, Option<Arc<Logo>>), Error> {
        let given = Entries::of("--theme", &["name", "logo", "colour", "footer"], &self.theme)?;
        let text = |name| Ok::<_, Error>(given.text(name)?.map(str::to_owned));
        let (page_logo, qr_logo) = given.parse("logo", logo)?.unzip();
        let colour = given.parse("colour", Theme::accent)?;
        let theme = Theme::new(text("name")?, page_logo, colour, text("footer")?).map_err(|error| {
            let name = if matches!(error, ThemeError::Footer) { "footer" } else { "name" };
            given.wrong(name, given.text(name).ok().flatten().unwrap_or_default(), error.to_string())
        })?;
        Ok((theme, qr_logo.map(Arc::new)))
    }
}

fn logo(path: &str) -> Result<(String, Logo), String> {
    let kind = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("svg") => "svg+xml",
        Some("png") => "png",
        Some("webp") => "webp",
        Some("jpg" | "jpeg") => "jpeg",
        _ => return Err(ThemeError::Logo.to_string()),
    };
    if fs::metadata(path).map_err(|error| error.to_string())?.len() > LOGO_BYTES {
        return Err(ThemeError::Logo.to_string());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let url = format!("data:image/{kind};base64,{}", STANDARD.encode(&bytes));
    let png = (kind == "png").then_some(&*bytes);
    // One that cannot be drawn into a PNG is still part of an SVG.
    let logo = Logo::new(url.clone(), png).or_else(|_| Logo::new(url.clone(), None));
    Ok((url, logo.map_err(|error| error.to_string())?))
}
