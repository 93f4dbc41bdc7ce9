//! The form of a link's social preview, which is stored as a whole and apart from the other fields.

use app::{FieldErrors, LinkFields, PreviewFields, edit_link::Target, find_link::LinkName};
use links::{LongUrl, Preview, Record};
use web::Answer;

use super::{
    link::{page_of, stored},
    notices::Refusal,
};
use crate::{context::Context, error::PageError, form::Form};

/// The value of the form's button.
pub(super) const PREVIEW: &str = "preview";

/// The texts of the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PreviewForm {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) image: String,
}

impl PreviewForm {
    /// Fills the form with the preview of a link.
    pub(super) fn of(record: &Record) -> Self {
        let Preview { title, description, image } = record.link.details().preview.clone().unwrap_or_default();
        Self {
            title: title.unwrap_or_default(),
            description: description.unwrap_or_default(),
            image: image.as_ref().map_or("", LongUrl::as_str).to_owned(),
        }
    }

    fn read(form: &Form) -> Self {
        let text = |name| form.value(name).replace("\r\n", "\n");
        Self {
            title: text("previewTitle"),
            description: text("previewDescription"),
            image: text("previewImage"),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the edit that stores the form. One without any text removes the preview.
    fn edit(&self) -> LinkFields {
        let Self { title, description, image } = self.clone();
        let preview =
            PreviewFields { title: Some(title), description: Some(description), image: Some(image) };
        LinkFields { preview: Some(Some(preview)), ..LinkFields::default() }
    }
}

/// Stores the form, unless the link was changed since the page was made.
pub(super) async fn store(context: &Context<'_>, name: LinkName) -> Result<Answer, PageError> {
    let (links, by) = (context.links, context.by);
    let version = context.form.filled("version").and_then(|text| text.parse().ok());
    let target = Target { name: name.clone(), versions: version.map(|version| vec![version]) };
    let form = PreviewForm::read(context.form);
    let refusal = match links.edit_link(&target, form.edit(), FieldErrors::default(), by).await {
        Ok(record) => return Ok(stored(context, &record, version != Some(record.link.version()))),
        Err(error) => Refusal::new(error, context.t)?,
    };
    let record = links.get_link(&name, by).await?;
    let mut page = page_of(context, &record, Some(refusal)).await;
    // What was typed stays; sent again, it replaces what another person has stored meanwhile.
    page.preview = form;
    Ok(context.page(page.notices.status(), &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_sets_all_parts_at_once() {
        let form = PreviewForm::read(&Form::parse(b"previewTitle=T&previewDescription=a%0D%0Ab&title=no"));
        assert!(!form.is_empty() && PreviewForm::default().is_empty());
        let preview = form.edit().preview.flatten().unwrap();
        assert_eq!((preview.title.as_deref(), preview.description.as_deref()), (Some("T"), Some("a\nb")));
        assert_eq!(preview.image.as_deref(), Some(""), "which removes the picture");
    }
}
