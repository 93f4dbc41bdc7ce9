//! Flags of the pages, and their checks.

use std::{fs, path::PathBuf, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Args, builder::BoolishValueParser};
use cli::{Error, args::Database};
use pages::{Colour, Theme, ThemeError};
use qr::Logo;

use super::{Config, Switch, settings::wrong};

/// Maximum length of a logo, in bytes. It is part of every page.
const LOGO_BYTES: u64 = 8 * 1024;

/// The flags of the pages.
#[derive(Clone, Debug, Args)]
pub struct PagesArgs {
    /// Let visitors create links without an API key. Off by default, except for the embedded form
    /// on a loopback address without --public-url and --trusted-proxies.
    #[arg(long, env = "RESOLVER_PUBLIC_CREATE", value_enum, value_name = "SWITCH")]
    pub public_create: Option<Switch>,
    /// Name of the service on its pages. Defaults to Shortmint.
    #[arg(long, env = "RESOLVER_THEME_NAME", value_name = "TEXT")]
    pub theme_name: Option<String>,
    /// Logo on the pages: an SVG, PNG, WebP or JPEG file of at most 8 KiB.
    #[arg(long, env = "RESOLVER_THEME_LOGO", value_name = "FILE")]
    pub theme_logo: Option<PathBuf>,
    /// Colour of buttons and links, such as #0a7f5a. White text on it has to be readable.
    #[arg(long, env = "RESOLVER_THEME_COLOUR", value_name = "COLOUR")]
    pub theme_colour: Option<String>,
    /// Text at the end of each page.
    #[arg(long, env = "RESOLVER_THEME_FOOTER", value_name = "TEXT")]
    pub theme_footer: Option<String>,
    /// Tell browsers to use HTTPS only with the host of a page, for two years.
    #[arg(long, env = "RESOLVER_HSTS", value_parser = BoolishValueParser::new())]
    pub hsts: bool,
}

/// The validated flags of the pages.
#[derive(Clone, Debug)]
pub struct PageSettings {
    /// Whether visitors may create links without an API key.
    pub public_create: bool,
    /// The operator's theme.
    pub theme: Theme,
    /// Whether browsers are told to use HTTPS only.
    pub hsts: bool,
    /// The theme's logo, for QR codes.
    pub qr_logo: Option<Arc<Logo>>,
}

impl Config {
    /// Validates the flags of the pages.
    pub(super) fn check_pages(&self) -> Result<PageSettings, Error> {
        let args = &self.pages;
        // A proxy on the same machine may open a loopback address to the world.
        let is_private = self.issuer.is_empty()
            && matches!(self.database.database, Database::Sqlite(_))
            && self.listen.ip().is_loopback()
            && self.public_url.is_none()
            && self.trusted_proxies.is_empty();
        let colour = args.theme_colour.as_ref().map(|text| {
            text.parse::<Colour>().map_err(|error| wrong("--theme-colour", text, error.to_string()))
        });
        let (logo, qr_logo) = args.theme_logo.as_ref().map(logo).transpose()?.unzip();
        let theme = Theme::new(args.theme_name.clone(), logo, colour.transpose()?, args.theme_footer.clone());
        let theme = theme.map_err(|error| {
            let (flag, value) = match error {
                ThemeError::Footer => ("--theme-footer", args.theme_footer.clone()),
                _ => ("--theme-name", args.theme_name.clone()),
            };
            wrong(flag, value.unwrap_or_default(), error.to_string())
        })?;
        let public_create = args.public_create.map_or(is_private, |switch| switch == Switch::On);
        Ok(PageSettings { public_create, theme, hsts: args.hsts, qr_logo: qr_logo.map(Arc::new) })
    }
}

/// Reads a logo, and returns it as a `data:` URL and for QR codes.
fn logo(path: &PathBuf) -> Result<(String, Logo), Error> {
    let refuse = |reason: String| wrong("--theme-logo", path.display(), reason);
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => "svg+xml",
        Some("png") => "png",
        Some("webp") => "webp",
        Some("jpg" | "jpeg") => "jpeg",
        _ => return Err(refuse(ThemeError::Logo.to_string())),
    };
    let length = fs::metadata(path).map_err(|error| refuse(error.to_string()))?.len();
    if length > LOGO_BYTES {
        return Err(refuse(ThemeError::Logo.to_string()));
    }
    let bytes = fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let url = format!("data:image/{kind};base64,{}", STANDARD.encode(&bytes));
    let png = (kind == "png").then_some(&*bytes);
    // One that cannot be drawn into a PNG is still part of an SVG.
    let logo = Logo::new(url.clone(), png).or_else(|_| Logo::new(url.clone(), None));
    Ok((url, logo.map_err(|error| refuse(error.to_string()))?))
}
