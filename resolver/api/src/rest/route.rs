//! A call of the API: its method and path, what it needs, its handler, and its description. The
//! router and the OpenAPI document are both made from it.

use std::{borrow::Cow, pin::Pin};

use hyper::Method;
use links::{api_key::Grant, scope::Scope};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    call::Call,
    docs::{Header, Kind, Topic},
    json::JSON,
    problem::Problem,
};
use web::{Answer, request_durations::RouteName};

/// Maximum length of a body, unless the call has another limit. A long URL of 8 KiB, escaped at its
/// worst, and all other fields fit.
pub(super) const BODY_BYTES: usize = 64 * 1024;

/// The path of all links. What follows it begins with a slug, unless the table of routes says
/// otherwise.
pub(super) const LINKS: &str = "/rest/v3/short-urls";

/// The answer of a handler, which may take time.
pub(super) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send + 'a>>;

#[derive(Clone, Copy)]
pub(super) enum Handler {
    Open(for<'a> fn(&'a Call) -> Answering<'a>),
    Keyed(Scope, for<'a> fn(&'a Call, &'a Grant) -> Answering<'a>),
    /// Answers a key with this scope, which is part of the query.
    KeyInQuery(Scope, for<'a> fn(&'a Call, &'a Grant) -> Answering<'a>),
    /// Answers while the body still arrives: the bulk call.
    Streamed(Scope),
}

/// Makes a [`Handler::Keyed`] from a scope and an async function.
macro_rules! keyed {
    ($scope:expr, $handler:path) => {
        $crate::rest::route::Handler::Keyed($scope, |call, by| Box::pin($handler(call, by)))
    };
}

pub(super) use keyed;

pub(super) struct Route {
    pub(super) method: Method,
    /// The path, with at most two parameters in braces. A link's slug may have several segments.
    pub(super) path: &'static str,
    pub(super) handler: Handler,
    pub(super) body_bytes: usize,
    /// The parameters that the query may have. A list has `[]` behind its name.
    pub(super) parameters: Vec<String>,
    pub(super) name: RouteName,
    /// The operation's id; `None` leaves the call out of the document.
    pub(super) id: Option<&'static str>,
    pub(super) topic: Topic,
    pub(super) summary: &'static str,
    pub(super) description: String,
    pub(super) is_addition: bool,
    pub(super) queries: Vec<(Cow<'static, str>, SchemaOf)>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Content>,
    /// Whether the body may be left out, or be the empty array that PHP writes for an empty object.
    pub(super) may_be_empty: bool,
    pub(super) answers: Vec<AnswerDocs>,
    /// Problems beside those that follow from the rest: from the key, the body, the parameters of
    /// the path and the headers.
    pub(super) problems: &'static [Kind],
}

/// A function that adds a schema to those of the document, and returns a reference to it.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schemas of a content, by media type.
pub(super) type Content = Vec<(&'static str, SchemaOf)>;

pub(super) fn json_of(schema: SchemaOf) -> Content {
    vec![(JSON, schema)]
}

/// Returns the schema of an array of items, at most so many.
pub(super) fn array_of<T: JsonSchema>(generator: &mut SchemaGenerator, most: usize) -> Schema {
    json_schema!({ "type": "array", "items": generator.subschema_for::<T>(), "maxItems": most })
}

/// The description of an answer other than a problem.
pub(super) struct AnswerDocs {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) content: Content,
    pub(super) has_etag: bool,
}

impl Route {
    /// Defines a call that is left out of the document until [`Route::document`] describes it.
    pub(super) fn new(method: Method, path: &'static str, handler: Handler) -> Self {
        Self {
            method,
            path,
            handler,
            body_bytes: BODY_BYTES,
            parameters: Vec::new(),
            name: RouteName::new("other"),
            id: None,
            topic: Topic::Service,
            summary: "",
            description: String::new(),
            is_addition: false,
            queries: Vec::new(),
            headers: Vec::new(),
            body: None,
            may_be_empty: false,
            answers: Vec::new(),
            problems: &[],
        }
    }

    pub(super) fn body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }

    pub(super) fn scope(&self) -> Option<Scope> {
        match self.handler {
            Handler::Open(_) => None,
            Handler::Keyed(scope, _) | Handler::KeyInQuery(scope, _) | Handler::Streamed(scope) => {
                Some(scope)
            }
        }
    }

    pub(super) fn document(mut self, id: &'static str, topic: Topic, summary: &'static str) -> Self {
        (self.id, self.topic, self.summary, self.name) = (Some(id), topic, summary, name(id));
        self
    }

    pub(super) fn text(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Marks the call as one that Shlink lacks.
    pub(super) fn addition(mut self) -> Self {
        self.is_addition = true;
        self
    }

    pub(super) fn query<Q: JsonSchema>(mut self) -> Self {
        let schema = Q::json_schema(&mut SchemaGenerator::default()).to_value();
        let fields = schema["properties"].as_object().into_iter();
        self.parameters.extend(fields.flat_map(|fields| fields.keys().cloned()));
        self.queries.push((Q::schema_name(), Q::json_schema));
        self
    }

    /// Accepts parameters that the document does not name.
    pub(super) fn accepts(mut self, names: &[&str]) -> Self {
        self.parameters.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub(super) fn header(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }

    /// Sets the schema of the body, a JSON object.
    pub(super) fn body<B: JsonSchema>(self) -> Self {
        self.body_of(json_of(SchemaGenerator::subschema_for::<B>))
    }

    /// Sets the schema of a body that may be left out, as may each of its fields.
    pub(super) fn optional_body<B: JsonSchema>(self) -> Self {
        Self { may_be_empty: true, ..self.body::<B>() }
    }

    /// Sets the content of the body by media type.
    pub(super) fn body_of(mut self, content: Content) -> Self {
        self.body = Some(content);
        self
    }

    /// Adds an answer of JSON with the status 200.
    pub(super) fn answers<A: JsonSchema>(self, description: &'static str) -> Self {
        self.answers_of(200, description, json_of(SchemaGenerator::subschema_for::<A>))
    }

    /// Adds an answer without a body, with the status 204.
    pub(super) fn done(self, description: &'static str) -> Self {
        self.answers_of(204, description, Vec::new())
    }

    /// Adds an answer with its content by media type.
    pub(super) fn answers_of(mut self, status: u16, description: &'static str, content: Content) -> Self {
        self.answers.push(AnswerDocs { status, description, content, has_etag: false });
        self
    }

    /// Adds an answer of JSON with the status 200, and the version of the link as `ETag`.
    pub(super) fn answers_with_etag<A: JsonSchema>(self, description: &'static str) -> Self {
        let mut route = self.answers::<A>(description);
        route.answers.iter_mut().for_each(|answer| answer.has_etag = true);
        route
    }

    /// Sets the problems that do not follow from the rest of the description.
    pub(super) fn fails(mut self, problems: &'static [Kind]) -> Self {
        self.problems = problems;
        self
    }
}

/// Returns the name of a call in metrics: its operation id in snake case.
fn name(id: &str) -> RouteName {
    let mut name = String::new();
    for letter in id.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    RouteName::new(&name)
}
