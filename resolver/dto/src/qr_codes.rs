//! Packs of QR codes for print.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::inline_schema;

/// The format of a pack, and the links if they are not those of a list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QrCodesQuery {
    /// Codes or slugs of links on `domain`, instead of a list.
    #[serde(rename = "shortCodes[]")]
    pub short_codes: Vec<String>,
    /// The id of a reservation, whose codes are printed whether or not they have links yet.
    /// Requires the scope `reserve` as well.
    #[schemars(with = "String", regex(pattern = "^[0-9a-f]{32}$"))]
    pub reservation: Option<String>,
    /// `svg` or `png` for an archive with an image for each link, `pdf` for sheets of labels.
    #[schemars(with = "PackFormat", extend("default" = "svg"))]
    pub format: Option<String>,
    /// The number of columns of labels on a sheet.
    #[schemars(with = "u64", range(min = 1, max = 6), extend("default" = 3))]
    pub columns: Option<String>,
    /// The number of rows of labels on a sheet.
    #[schemars(with = "u64", range(min = 1, max = 10), extend("default" = 7))]
    pub rows: Option<String>,
    /// Pixels on each side of an image, without its margin.
    #[schemars(with = "u64", range(min = 50, max = 1_000), extend("default" = 1_000))]
    pub size: Option<String>,
    /// Pixels of the margin of an image; `auto` for the quiet zone that readers need.
    #[schemars(with = "Margin", extend("default" = "auto"))]
    pub margin: Option<String>,
    /// The level of error correction: 7, 15, 25 or 30 per cent of a code can be restored.
    #[schemars(with = "String", regex(pattern = "^[LMQHlmqh]$"), extend("default" = "L"))]
    pub error_correction: Option<String>,
    /// The color of the modules, in hexadecimal digits.
    #[schemars(with = "Color", extend("default" = "000000"))]
    pub color: Option<String>,
    /// The background color, which must differ from `color`.
    #[schemars(with = "Color", extend("default" = "ffffff"))]
    pub bg_color: Option<String>,
}

inline_schema!(struct PackFormat, json_schema!({ "type": "string", "enum": ["svg", "png", "pdf"] }));

inline_schema!(
    struct Margin,
    json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 200 }, { "const": "auto" }] })
);

inline_schema!(
    struct Color,
    json_schema!({ "type": "string", "pattern": "^#?([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$" })
);
