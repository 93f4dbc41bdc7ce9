//! What a path behind a link's name does: `/docs/a/b` for the link `docs`.

use serde::{Deserialize, Serialize};

codes::named_values! {
    /// What a path behind a link's name does.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ExtraPath {
        /// The request is not for the link.
        Refuse => "refuse",
        /// The link redirects as without it.
        Ignore => "ignore",
        /// It is appended to the path of the long URL.
        Append => "append",
        /// Its segments take the place of `{1}`, `{2}`, … in the long URL, and what is left of it
        /// that of `{rest}`.
        Fill => "fill",
    }
}
