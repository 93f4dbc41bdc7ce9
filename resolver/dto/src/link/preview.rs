//! The social preview of a link, in bodies and answers.

use links::{DESCRIPTION_BYTES, LongUrl, TITLE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The preview that crawlers of chats and social networks will get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct NewSocialPreview {
    /// The title. Defaults to the title of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE_BYTES))]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = DESCRIPTION_BYTES))]
    pub description: Option<String>,
    /// The picture: an absolute URL with the scheme https or http, whose host the target rules
    /// allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LongUrl::MAX_LEN))]
    #[schemars(extend("format" = "iri", "examples" = ["https://example.com/picture.png"]))]
    pub image: Option<String>,
}

/// The preview that crawlers of chats and social networks get.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct SocialPreview<'a> {
    /// The title; null for that of the link.
    pub title: Option<&'a str>,
    /// The description.
    pub description: Option<&'a str>,
    /// The URL of the picture.
    pub image: Option<&'a str>,
}
