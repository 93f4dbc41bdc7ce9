//! One call of the API, and how it is described.

use hyper::Method;
use links::scope::Scope;
use serde_json::{Map, Value, json};

use super::{
    parameters,
    problems::{self, Kind},
};

/// What every call can meet whose body is read.
const OF_EVERY_CALL: [Kind; 3] = [Kind::BodyTooLarge, Kind::SlowBody, Kind::Internal];
/// What a call with a key can meet beside that.
const OF_KEYS: [Kind; 5] =
    [Kind::NoKey, Kind::WrongKey, Kind::Forbidden, Kind::TooManyCalls, Kind::Unavailable];

/// What calls are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// Links.
    Links,
    /// Rules of a link.
    Rules,
    /// Tags.
    Tags,
    /// Domains.
    Domains,
    /// Visits.
    Visits,
    /// Codes before links.
    Reservations,
    /// Hosts that links lead to.
    Targets,
    /// The service itself.
    Service,
}

impl Topic {
    /// All topics, in the order in which they are shown.
    pub(super) const ALL: [Self; 8] = [
        Self::Links,
        Self::Rules,
        Self::Tags,
        Self::Domains,
        Self::Visits,
        Self::Reservations,
        Self::Targets,
        Self::Service,
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Links => "Short URLs",
            Self::Rules => "Redirect rules",
            Self::Tags => "Tags",
            Self::Domains => "Domains",
            Self::Visits => "Visits",
            Self::Reservations => "Reservations",
            Self::Targets => "Targets",
            Self::Service => "Service",
        }
    }

    /// What it is about.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Links => "Links: a code or a slug on a domain, and the long URL that it leads to.",
            Self::Rules => {
                "Other places that a link leads some visitors to: the first rule whose conditions all hold."
            }
            Self::Tags => "Words that links are grouped by.",
            Self::Domains => "Hosts that short links have.",
            Self::Visits => {
                "Visits are counted as a metric and not kept by this version: every list of them is empty and every count is 0. What does not exist is answered as if they were kept."
            }
            Self::Reservations => {
                "An addition. Codes before links, for what has to be printed before it is known where it leads: a range is set aside, its codes are told at once, and links are filled in later."
            }
            Self::Targets => {
                "An addition. Hosts that links may lead to, or may not; for new links and for edits."
            }
            Self::Service => "The service itself.",
        }
    }
}

/// One call: a method and a path with all that can be sent and answered.
pub(super) struct Operation {
    method: Method,
    path: &'static str,
    id: &'static str,
    topic: Topic,
    summary: &'static str,
    description: String,
    scope: Option<Scope>,
    is_ours: bool,
    parameters: Vec<&'static str>,
    body: Option<Value>,
    answers: Vec<(u16, Value)>,
    problems: Vec<Kind>,
}

impl Operation {
    /// A call that needs no key and says nothing.
    pub(super) fn new(method: Method, path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            path,
            id,
            topic: Topic::Service,
            summary,
            description: String::new(),
            scope: None,
            is_ours: false,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// What it is about, and the scope that its key needs.
    pub(super) fn of(mut self, topic: Topic, scope: Scope) -> Self {
        (self.topic, self.scope) = (topic, Some(scope));
        self
    }

    /// More than the summary says.
    pub(super) fn text(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Marks it as one that Shlink does not have.
    pub(super) fn ours(mut self) -> Self {
        self.is_ours = true;
        self
    }

    /// Names of its parameters.
    pub(super) fn takes(mut self, parameters: &[&'static str]) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// A body of JSON, by the name of its schema.
    pub(super) fn sends(self, schema: &str) -> Self {
        let content = json!({ "application/json": { "schema": reference(schema) } });
        self.sends_any(content)
    }

    /// A body of JSON whose fields may all be left out, and so may the body. PHP writes an object without fields as an array.
    pub(super) fn may_send(self, schema: &str) -> Self {
        let schema = json!({ "anyOf": [reference(schema), { "type": "array", "maxItems": 0 }] });
        self.sends_any(json!({ "application/json": { "schema": schema } })).body_is_optional()
    }

    /// Lets the body be left out.
    pub(super) fn body_is_optional(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body["required"] = json!(false);
        }
        self
    }

    /// A body of one of several media types.
    pub(super) fn sends_any(mut self, content: Value) -> Self {
        self.body = Some(json!({ "required": true, "content": content }));
        self
    }

    /// An answer of JSON, by the name of its schema.
    pub(super) fn tells(self, description: &str, schema: &str) -> Self {
        let content = json!({ "application/json": { "schema": reference(schema) } });
        self.tells_any(200, json!({ "description": description, "content": content }))
    }

    /// An answer without a body.
    pub(super) fn done(self, description: &str) -> Self {
        self.tells_any(204, json!({ "description": description }))
    }

    /// Any other answer, beside those that were told of before.
    pub(super) fn tells_any(mut self, status: u16, answer: Value) -> Self {
        self.answers.push((status, answer));
        self
    }

    /// Adds the version of the link to the answer.
    pub(super) fn with_etag(mut self) -> Self {
        for (_, answer) in &mut self.answers {
            answer["headers"]["ETag"] = parameters::header("ETag");
        }
        self
    }

    /// What can go wrong beside what can with every call.
    pub(super) fn fails(mut self, problems: &[Kind]) -> Self {
        self.problems.extend(problems);
        self
    }

    /// Its path and method, in the form of the document.
    pub(super) fn key(&self) -> (&'static str, String) {
        (self.path, self.method.as_str().to_ascii_lowercase())
    }

    /// Its description.
    pub(super) fn describe(self) -> Value {
        let responses = self.responses();
        let mut description = self.description;
        if let Some(scope) = self.scope {
            let gap = if description.is_empty() { "" } else { "\n\n" };
            let or_admin = match scope {
                Scope::Admin => String::new(),
                _ => format!(" or `{}`", Scope::Admin),
            };
            description.push_str(&format!("{gap}The key needs the scope `{scope}`{or_admin}."));
        }
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.topic.name()],
            "summary": self.summary,
        });
        if !description.is_empty() {
            operation["description"] = json!(description);
        }
        if self.is_ours {
            operation["x-addition"] = json!(true);
        }
        match self.scope {
            Some(scope) => operation["x-scope"] = json!(scope.as_str()),
            None => operation["security"] = json!([]),
        }
        if !self.parameters.is_empty() {
            let parameters: Vec<_> = self.parameters.iter().map(|name| parameters::parameter(name)).collect();
            operation["parameters"] = json!(parameters);
        }
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        operation["responses"] = Value::Object(responses);
        operation
    }

    fn responses(&self) -> Map<String, Value> {
        let mut kinds = self.problems.clone();
        kinds.extend(OF_EVERY_CALL);
        if self.scope.is_some() {
            kinds.extend(OF_KEYS);
        }
        kinds.sort_unstable();
        kinds.dedup();
        let mut responses = Map::new();
        for (status, answer) in &self.answers {
            let mut answer = answer.clone();
            if self.scope.is_some() {
                let mut headers = answer["headers"].as_object().cloned().unwrap_or_default();
                parameters::add_rate_limit(&mut headers);
                answer["headers"] = Value::Object(headers);
            }
            responses.insert(status.to_string(), answer);
        }
        for (status, problem) in problems::responses(&kinds, self.scope.is_some()) {
            responses.entry(status).or_insert(problem);
        }
        responses
    }
}

/// A schema by its name.
pub(super) fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}
