//! Push configurations of tasks.

use axum::http::HeaderValue;
use rialto_core::answer::Answer as CoreAnswer;
use rialto_core::command::{Command, JobRef, RemoveJobWebhook, SetJobWebhook};
use rialto_core::job::{Job, JobWebhook};
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;

use super::{Answer, Call, tasks};
use crate::a2a::delivery::{PushSecrets, StoredPush, push_config};
use crate::a2a::errors;
use crate::a2a::wire::Version;
use crate::a2a::wire::error::A2aError;
use crate::a2a::wire::params::{PushConfig, PushParams};
use crate::a2a::wire::reader::{Violation, Violations};

/// Checks a configuration, which may come with a message, before anything is done with it.
pub fn check(call: &Call, config: &PushConfig, with_message: bool) -> Result<(), A2aError> {
    let version = call.binding.version();
    let place = match (version, with_message) {
        (Version::V1, false) => "",
        (Version::V03, false) => "pushNotificationConfig.",
        (Version::V1, true) => "configuration.taskPushNotificationConfig.",
        (Version::V03, true) => "configuration.pushNotificationConfig.",
    };
    let scheme = match version {
        Version::V1 => "authentication.scheme",
        Version::V03 => "authentication.schemes",
    };
    let mut wrong = Violations::new();
    let mut reject = |name: &str, description: String| {
        wrong.push(Violation { field: format!("{place}{name}"), description });
    };
    if let Err(why) = call.context.egress.check_url(&config.url) {
        reject("url", why.to_string());
    }
    let authentication = config.authentication.as_ref();
    for (name, text) in [
        ("token", config.token.as_deref()),
        (scheme, authentication.map(|it| it.scheme.as_str())),
        ("authentication.credentials", authentication.and_then(|it| it.credentials.as_deref())),
    ] {
        if text.is_some_and(|text| HeaderValue::from_str(text).is_err()) {
            reject(name, "must be valid in a header".to_owned());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(A2aError::invalid(wrong)) }
}

/// The error for a configuration that is not stored. `task` is the field that names its task.
pub fn failure(failure: &Failure, task: &str) -> A2aError {
    match failure {
        Failure::Refused(Refusal::TooManyReports { max }) => {
            let text =
                format!("has {max} push configurations, which is the most; delete one first");
            A2aError::invalid_field(task, text)
        }
        other => errors::from_engine(other),
    }
}

/// What is stored of a configuration.
pub fn webhook(call: &Call, task: &str, config: PushConfig) -> JobWebhook {
    let is_old = call.binding.version() == Version::V03;
    // In 0.3 a task has one configuration unless its client names more.
    let new_id = || {
        if is_old { task.to_owned() } else { call.context.engine.random().new_uuid().to_string() }
    };
    let id = config.id.unwrap_or_else(new_id);
    let (scheme, credentials) = match config.authentication {
        Some(authentication) => (Some(authentication.scheme), authentication.credentials),
        None => (None, None),
    };
    let secrets = PushSecrets { token: config.token, credentials };
    let random = call.context.engine.random();
    let sealed = call.context.state.seal_secrets(task, &id, &secrets, random);
    let meta = serde_json::to_string(&StoredPush { old: is_old, scheme, sealed });
    JobWebhook { id, url: config.url, meta: meta.unwrap_or_default() }
}

/// CreateTaskPushNotificationConfig.
pub async fn create(call: &Call, config: PushConfig) -> Result<Answer, A2aError> {
    let task = config.task_id.clone();
    let task = task.ok_or_else(|| A2aError::invalid_field("taskId", "is required"))?;
    let (job, _) = tasks::find(call, &task).await?;
    check(call, &config, false)?;
    let webhook = webhook(call, &job.uuid.to_string(), config);
    let (id, by) = (webhook.id.clone(), call.client.agent);
    let order = SetJobWebhook { job: JobRef::Id(job.id), by, webhook };
    let job = run(call, Command::SetJobWebhook(Box::new(order)), &task).await?;
    let stored = job.webhooks.iter().find(|known| known.id == id);
    let stored = stored.ok_or_else(|| A2aError::task_not_found(&task))?;
    Ok(Answer::Push(push_config(&job, stored)))
}

async fn run(call: &Call, order: Command, task: &str) -> Result<std::sync::Arc<Job>, A2aError> {
    match call.context.engine.run(order).await {
        Ok(CoreAnswer::Job { job, .. }) => Ok(job),
        Ok(_) => Err(A2aError::task_not_found(task)),
        Err(failed) => Err(failure(&failed, "taskId")),
    }
}

/// GetTaskPushNotificationConfig. 0.3 may leave out which one.
pub async fn get(call: &Call, params: PushParams) -> Result<Answer, A2aError> {
    let (job, _) = tasks::find(call, &params.task_id).await?;
    let wanted = |known: &&JobWebhook| params.id.as_ref().is_none_or(|id| *id == known.id);
    if params.id.is_none() && call.binding.version() == Version::V1 {
        return Err(A2aError::invalid_field("id", "is required"));
    }
    let found = job.webhooks.iter().find(wanted);
    let found = found.ok_or_else(|| A2aError::task_not_found(&params.task_id))?;
    Ok(Answer::Push(push_config(&job, found)))
}

/// ListTaskPushNotificationConfigs.
pub async fn list(call: &Call, params: PushParams) -> Result<Answer, A2aError> {
    let (job, _) = tasks::find(call, &params.task_id).await?;
    Ok(Answer::PushList(job.webhooks.iter().map(|known| push_config(&job, known)).collect()))
}

/// DeleteTaskPushNotificationConfig. A second time succeeds as well.
pub async fn delete(call: &Call, params: PushParams) -> Result<Answer, A2aError> {
    let (job, _) = tasks::find(call, &params.task_id).await?;
    let id = params.id.ok_or_else(|| A2aError::invalid_field("id", "is required"))?;
    if job.webhooks.iter().any(|known| known.id == id) {
        let order = RemoveJobWebhook { job: JobRef::Id(job.id), by: call.client.agent, id };
        run(call, Command::RemoveJobWebhook(Box::new(order)), &params.task_id).await?;
    }
    Ok(Answer::Removed)
}
