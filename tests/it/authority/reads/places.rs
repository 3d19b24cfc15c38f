//! Every readable place, under every id of its objects.

use std::time::Duration;

use rialto_hub::app::operations;
use rialto_protocols::clara::PROCESS;

use super::life::{CONFIG, Life, Reader};

/// A stream that is silent for this long has sent everything.
const QUIET: Duration = Duration::from_millis(300);

/// Added to the path of a task for its events.
const SUBSCRIBE: &str = ":subscribe";

/// One request to one place.
pub struct Place {
    /// As the hub lists it.
    pub route: String,
    path: String,
}

/// All of them.
pub fn places(life: &Life) -> Vec<Place> {
    let mut places = Vec::new();
    for route in operations().into_iter().filter(|route| route.method == "GET") {
        // A WebSocket sends nothing before a signed message opens it.
        if route.path.ends_with("/ws") {
            continue;
        }
        let name = format!("GET {}", route.path);
        for path in filled(&route.path, life) {
            for query in queries(&route.path) {
                places.push(Place { route: name.clone(), path: format!("{path}{query}") });
            }
        }
    }
    places
}

fn queries(path: &str) -> Vec<String> {
    match path {
        _ if path.starts_with("/clara") => vec![format!("?process-id={PROCESS}&limit=1000")],
        _ if path.starts_with("/a2a") && path.ends_with("/tasks") => {
            vec!["?includeArtifacts=true".to_owned()]
        }
        _ if path.starts_with("/a2a/") => vec![String::new()],
        _ if path.ends_with("/inbox") || path.ends_with("/stream") => vec![String::new()],
        _ => vec![String::new(), "?limit=100&after=0".to_owned()],
    }
}

fn filled(template: &str, life: &Life) -> Vec<String> {
    let one = |name: &str| vec![name.to_owned()];
    let mut paths = vec![String::new()];
    for part in template.split('/').skip(1) {
        let names = match part {
            "{job_id}" | "{uuid}" => life.jobs.clone(),
            "{trace_id}" => life.traces.clone(),
            "{message}" => life.messages.clone(),
            "{process}" => one(PROCESS),
            "{agent}" => life.called.clone(),
            "{tenant}" => life.called[..1].to_vec(),
            "{config}" => one(CONFIG),
            "{task}" if template.ends_with("{task}") => {
                let both = |task: &String| [task.clone(), format!("{task}{SUBSCRIBE}")];
                life.tasks.iter().flat_map(both).collect()
            }
            "{task}" => life.tasks.clone(),
            "{owner_id}" | "{name}" => vec!["requester".to_owned(), "worker".to_owned()],
            "{id}"
                if ["/jobs/", "/requests/", "/collaborations/"]
                    .iter()
                    .any(|part| template.contains(part)) =>
            {
                life.jobs.clone()
            }
            "{agent_id}" | "{id}" => life.agents.clone(),
            open => {
                assert!(!open.starts_with('{'), "the scenario has no value for {open}");
                one(open)
            }
        };
        let longer = |path: &String| names.iter().map(|name| format!("{path}/{name}")).collect();
        paths = paths.iter().flat_map::<Vec<String>, _>(longer).collect();
    }
    paths
}

/// The response; of a stream, everything until it is silent.
pub async fn read(life: &Life, by: &Reader, place: &Place) -> String {
    let first = if place.path.starts_with("/openclaw") { "0-0" } else { "0" };
    let mut request = life.hub.http.get(format!("{}{}", life.hub.url, place.path));
    if place.path.contains("/inbox")
        || place.path.contains("/stream")
        || place.path.contains("/events")
        || place.path.ends_with(SUBSCRIBE)
    {
        request = request.header("last-event-id", first);
    }
    if let Some(key) = &by.key {
        request = request.bearer_auth(key);
    }
    let mut answer = request.send().await.expect("an answer");
    let mut bytes = format!("{:?}", answer.headers()).into_bytes();
    while let Ok(Ok(Some(chunk))) = tokio::time::timeout(QUIET, answer.chunk()).await {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
