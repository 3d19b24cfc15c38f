//! Checks what goes over the wire against the API document: every answer of a documented operation has
//! a declared status, content type and body, and a request that is accepted has the declared body.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The document, ready to be checked against.
pub struct ApiDoc {
    components: Value,
    operations: Vec<DocumentedOperation>,
    /// Compiled schemas by their text.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// One operation of the document.
struct DocumentedOperation {
    method: String,
    path: Vec<String>,
    operation: Value,
}

/// An answer as a test received it.
#[derive(Clone, Copy)]
pub struct ReceivedAnswer<'a> {
    /// `None` where the test does not know it.
    pub method: Option<&'a str>,
    pub path: &'a str,
    pub status: u16,
    pub content_type: &'a str,
    /// `None` for a body that was not read.
    pub body: Option<&'a str>,
}

impl ApiDoc {
    pub fn new(document: &Value) -> Self {
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                operations.push(DocumentedOperation {
                    method: method.to_uppercase(),
                    path: path.split('/').map(str::to_owned).collect(),
                    operation: operation.clone(),
                });
            }
        }
        let components = document["components"].clone();
        Self { components, operations, validators: Mutex::default() }
    }

    /// Checks an answer; the answers of paths that are not documented are free.
    #[track_caller]
    pub fn check_answer(&self, answer: ReceivedAnswer<'_>) {
        let candidates = self.candidates(answer.method, answer.path);
        // A method that the path does not have is no operation.
        if candidates.is_empty() || answer.status == 405 {
            return;
        }
        let results: Vec<_> = candidates.iter().map(|one| self.check(one, answer)).collect();
        if let Some(Err(wrong)) = results.iter().find(|result| result.is_err())
            && !results.iter().any(Result::is_ok)
        {
            let ReceivedAnswer { method, path, status, body, .. } = answer;
            let method = method.unwrap_or("?");
            panic!("{method} {path} answered {status}: {wrong}\n{}", body.unwrap_or_default());
        }
    }

    /// Checks the body of a request that was accepted.
    #[track_caller]
    pub fn check_request(&self, method: &str, path: &str, status: u16, body: &[u8]) {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return };
        for one in self.candidates(Some(method), path) {
            let schema = &one.operation["requestBody"]["content"]["application/json"]["schema"];
            if (200..300).contains(&status) && !schema.is_null() {
                let wrong = self.violation(schema, &body);
                assert_eq!(wrong, None, "{method} {path} accepted {body}");
            }
        }
    }

    /// Checks the data of an event.
    #[track_caller]
    pub fn check_event(&self, path: &str, data: &str) {
        let Ok(data) = serde_json::from_str::<Value>(data) else { return };
        for one in self.candidates(None, path) {
            let stream = &one.operation["responses"]["200"]["content"]["text/event-stream"];
            let schema = &stream["schema"]["x-event-data"];
            if !schema.is_null() {
                assert_eq!(self.violation(schema, &data), None, "an event of {path}: {data}");
            }
        }
    }

    /// The operations at a path: those with the fewest variable parts that match.
    fn candidates(&self, method: Option<&str>, path: &str) -> Vec<&DocumentedOperation> {
        let parts: Vec<&str> = path.split('/').collect();
        let is_variable = |part: &&String| part.starts_with('{');
        let matches = |one: &&DocumentedOperation| {
            let same = |(declared, given): (&String, &&str)| {
                declared == given || is_variable(&declared) && !given.is_empty()
            };
            one.path.len() == parts.len() && one.path.iter().zip(&parts).all(same)
        };
        let variables = |one: &DocumentedOperation| one.path.iter().filter(is_variable).count();
        let all: Vec<_> = self.operations.iter().filter(matches).collect();
        let fewest = all.iter().map(|one| variables(one)).min();
        let fits = |one: &&DocumentedOperation| method.is_none_or(|method| method == one.method);
        all.into_iter().filter(|one| Some(variables(one)) == fewest).filter(fits).collect()
    }

    fn check(&self, one: &DocumentedOperation, answer: ReceivedAnswer<'_>) -> Result<(), String> {
        let response = &one.operation["responses"][answer.status.to_string()];
        let response = self.resolved(response);
        if response.is_null() {
            return Err("the status is not documented".to_owned());
        }
        let Some(content) = response["content"].as_object() else { return Ok(()) };
        let Some(media) = media_type(content, answer.content_type) else {
            return Err(format!("{} is not documented", answer.content_type));
        };
        let Some(body) = answer.body.filter(|_| answer.content_type.contains("json")) else {
            return Ok(());
        };
        let body: Value = match serde_json::from_str(body) {
            Ok(body) => body,
            // The hub passes on numbers that no double can hold.
            Err(error) if error.to_string().starts_with("number out of range") => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        if let Some(wrong) = self.violation(&media["schema"], &body) {
            return Err(wrong);
        }
        // In a2a `code` is the status, and the reason is the code.
        let reasons = ["/error/details/0/reason", "/error/data/0/reason", "/error/data/reason"];
        let others = ["/code", "/error_code", "/error/code", "/payload/code"];
        let mut places = reasons.into_iter().chain(others);
        let code = places.find_map(|place| body.pointer(place));
        match (response["x-codes"].as_array(), code) {
            (Some(codes), Some(code)) => {
                let text = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
                let known = codes.contains(&json!(text));
                known.then_some(()).ok_or_else(|| format!("the code {text} is not documented"))
            }
            _ => Ok(()),
        }
    }

    /// The response itself, where the document refers to it.
    fn resolved<'d>(&'d self, response: &'d Value) -> &'d Value {
        let name = response["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        name.map_or(response, |name| &self.components["responses"][name])
    }

    /// What is wrong with a value, by a schema of the document.
    fn violation(&self, schema: &Value, value: &Value) -> Option<String> {
        let text = schema.to_string();
        let known = self.lock().get(&text).cloned();
        let validator = known.unwrap_or_else(|| {
            let mut whole = schema.clone();
            whole["components"] = json!({"schemas": self.components["schemas"]});
            let made = Arc::new(jsonschema::validator_for(&whole).expect("a valid schema"));
            self.lock().insert(text, made.clone());
            made
        });
        let wrong = validator.iter_errors(value).next();
        wrong.map(|error| format!("{error} at {}", error.instance_path()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Validator>>> {
        self.validators.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a content type, with or without its parameters.
fn media_type<'c>(content: &'c Map<String, Value>, given: &str) -> Option<&'c Value> {
    let essence = given.split(';').next().unwrap_or_default().trim();
    content.get(given).or_else(|| content.get(essence))
}
