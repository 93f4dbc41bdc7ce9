//! Dimensions: the properties of visits that are counted by value.

codes::named_values! {
    /// A property of visits that is counted by value, with its name in the API. The codes, which
    /// are also the places in `ALL`, are stored: one is never reused, and chunks have room for
    /// 16.
    ///
    /// Places follow each other from the widest on, because the text of each begins with that of
    /// the one before, and chunks store only the difference.
    pub enum Dimension {
        /// Host of the referring page.
        Referrer = 0 => "referrer",
        /// Browser.
        Browser = 1 => "browser",
        /// Operating system.
        Os = 2 => "os",
        /// Kind of device.
        Device = 3 => "device",
        /// Country: two letters of ISO 3166-1.
        Country = 4 => "country",
        /// Region: `CC/Region`.
        Region = 5 => "region",
        /// City: `CC/Region/City`.
        City = 6 => "city",
        /// Preferred language, such as `de` or `pt-BR`.
        Language = 7 => "language",
        /// Outcome of the visit. The only dimension in which visits count that were not redirected.
        Outcome = 8 => "outcome",
        /// Number of the redirect rule that matched.
        Rule = 9 => "rule",
    }
}

const _: () = assert!(Dimension::ALL.len() <= 16, "chunks have room for 16");
