//! The description of one call, from its route.

use links::scope::Scope;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    super::{
        docs::{Header, Kind, TOPICS},
        route::{AnswerDocs, Content, Handler, Route, SchemaOf},
    },
    parameters, problems,
};

/// Problems that every call has whose body is read.
const OF_EVERY_CALL: [Kind; 3] = [Kind::BodyTooLarge, Kind::SlowBody, Kind::Internal];
/// Problems that a call with a key has beside those.
const OF_KEYS: [Kind; 6] = [
    // Of a parameter that the call does not have.
    Kind::InvalidData,
    Kind::NoKey,
    Kind::WrongKey,
    Kind::Forbidden,
    Kind::TooManyCalls,
    Kind::Unavailable,
];

/// Makes a generator whose references lead to the components of the document.
pub(super) fn generator(mut settings: SchemaSettings) -> SchemaGenerator {
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

/// Describes a call for the document. Its parameters and schemas are added to the components.
pub(super) fn describe(
    route: &Route,
    id: &str,
    (requests, answers): (&mut SchemaGenerator, &mut SchemaGenerator),
    parameters: &mut Map<String, Value>,
) -> Value {
    let (_, topic, _) = TOPICS[route.topic as usize];
    let mut operation = json!({ "operationId": id, "tags": [topic], "summary": route.summary });
    let description = description(route);
    if !description.is_empty() {
        operation["description"] = json!(description);
    }
    if route.is_addition {
        operation["x-addition"] = json!(true);
    }
    match route.scope() {
        Some(scope) => operation["x-scope"] = json!(scope.as_str()),
        None => operation["security"] = json!([]),
    }
    let of_call = parameters::add(parameters, route, requests);
    if !of_call.is_empty() {
        operation["parameters"] = json!(of_call);
    }
    if let Some(content) = &route.body {
        operation["requestBody"] = body_of(route, content, requests);
    }
    operation["responses"] = Value::Object(responses(route, answers));
    operation
}

fn description(route: &Route) -> String {
    let mut description = route.description.clone();
    if let Some(scope) = route.scope() {
        let gap = if description.is_empty() { "" } else { "\n\n" };
        let or_admin = match scope {
            Scope::Admin => String::new(),
            _ => format!(" or `{}`", Scope::Admin),
        };
        description.push_str(&format!("{gap}The key needs the scope `{scope}`{or_admin}."));
    }
    description
}

fn body_of(route: &Route, content: &Content, generator: &mut SchemaGenerator) -> Value {
    let mut content = content_of(content, generator);
    if route.may_be_empty {
        for media in content.values_mut() {
            let schema = media["schema"].take();
            media["schema"] = json!({ "anyOf": [schema, { "type": "array", "maxItems": 0 }] });
        }
    }
    json!({ "required": !route.may_be_empty && !is_streamed(route), "content": content })
}

fn content_of(content: &Content, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let media = |(media, schema): &(&'static str, SchemaOf)| {
        ((*media).to_owned(), json!({ "schema": schema(generator) }))
    };
    content.iter().map(media).collect()
}

/// Returns whether the body is answered item by item. One that is missing, or that cannot be read
/// to its end, is no problem then.
fn is_streamed(route: &Route) -> bool {
    matches!(route.handler, Handler::Streamed(_))
}

/// Returns the problem of a path whose parameter names nothing.
fn not_found(parameter: &str) -> Kind {
    match parameter {
        "shortCode" => Kind::NoShortUrl,
        "tag" => Kind::NoTag,
        "domain" => Kind::NoDomain,
        "pattern" => Kind::NoTarget,
        "webhook" => Kind::NoWebhook,
        "delivery" => Kind::NoDelivery,
        "scheduled" => Kind::NoScheduledEdit,
        _ => Kind::NoReservation,
    }
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let is_keyed = route.scope().is_some();
    let mut kinds = route.problems.to_vec();
    kinds.extend(OF_EVERY_CALL);
    kinds.extend(parameters::names_in(route.path).map(not_found));
    // The items of a call that is answered item by item have these problems, and not the call.
    let headers = route.headers.iter().filter(|_| !is_streamed(route));
    kinds.extend(headers.map(|header| match header {
        Header::IfMatch => Kind::Superseded,
        Header::IdempotencyKey => Kind::IdempotencyKeyReused,
    }));
    if route.body.is_some() && !is_streamed(route) {
        kinds.push(Kind::MalformedBody);
    }
    if is_keyed {
        kinds.extend(OF_KEYS);
    }
    kinds.sort_unstable();
    kinds.dedup();
    let mut responses = Map::new();
    for answer in &route.answers {
        responses.insert(answer.status.to_string(), response(answer, is_keyed, generator));
    }
    for (status, problem) in problems::responses(&kinds, is_keyed) {
        responses.entry(status).or_insert(problem);
    }
    responses
}

fn response(answer: &AnswerDocs, is_keyed: bool, generator: &mut SchemaGenerator) -> Value {
    let mut response = json!({ "description": answer.description });
    let content = content_of(&answer.content, generator);
    if !content.is_empty() {
        response["content"] = Value::Object(content);
    }
    let mut headers = Map::new();
    if answer.has_etag {
        headers.insert("ETag".to_owned(), parameters::header("ETag"));
    }
    if is_keyed {
        parameters::add_rate_limit(&mut headers);
    }
    if !headers.is_empty() {
        response["headers"] = Value::Object(headers);
    }
    response
}
