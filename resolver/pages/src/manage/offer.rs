//! What the address of a page offers to undo.
//!
//! 1. A form leads to a page that says what was done and offers to undo it. Both are in the address
//!    of that page, so that it can be loaded again.
//! 2. They have a MAC of the session. Otherwise another person's link would say that something was
//!    done, above a button that does what that person has chosen.
//! 3. The MAC is for one page: the same fields on another one are not signed.

use crate::{addresses::with_parameter, context::Context, form::Form};

/// The field of a query with the MAC of others.
const MAC: &str = "mac";

/// Returns an address of `page`, with or without a query, that also has these fields.
pub(super) fn offering(context: &Context<'_>, address: &str, page: &str, mut fields: Form) -> String {
    let mac = mac_of(context, page, &fields);
    fields.0.push((MAC.to_owned(), mac));
    with_parameter(address, &fields.query())
}

/// Returns the fields of these names in the query of a page; `None` if no form of this session has
/// led there.
pub(super) fn offered(context: &Context<'_>, page: &str, names: &[&str]) -> Option<Form> {
    let fields = context.query.only(names);
    let is_ours = || context.query.get(MAC) == Some(&mac_of(context, page, &fields));
    (fields == Form::default() || is_ours()).then_some(fields)
}

/// Neither a page's address nor a query has the white space that separates them here.
fn mac_of(context: &Context<'_>, page: &str, fields: &Form) -> String {
    context.session.mac(&format!("{page} {}", fields.query()))
}
