//! Logs of jobs handled by agents of this machine: the programs' standard error, stored by `rialto
//! agent run` beside the agent's key.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rialto_client::agent::record::{LOG_FILE, LOGS_DIR};
use serde_json::json;
use uuid::Uuid;

use crate::commands::context::Home;
use crate::commands::context::home::{list_dir, read_error};
use crate::commands::{CliError, CliResult, Exit, HubOptions, escape_line, output};

/// Bytes read at once.
const CHUNK_MAX: u64 = 64 << 10;
/// A longer line is shown in pieces of this size.
const LINE_MAX: usize = 8 << 10;

/// The log of a job at one agent.
#[derive(Debug)]
pub struct Log {
    pub agent: String,
    pub path: PathBuf,
    /// Position up to which it was read.
    at: u64,
    /// The start of a line that is not complete yet.
    partial_line: Vec<u8>,
}

/// The directory of jobs that have not ended.
const JOBS: &str = "jobs";

/// `rialto job log`: prints the logs of a job that ran on this machine.
pub async fn print_logs(options: &HubOptions, id: &str) -> CliResult {
    let mut logs = find_logs(id)?;
    if logs.is_empty()
        && let Some(id) = hub_id(options, id).await
    {
        logs = find_logs(&id)?;
    }
    if logs.is_empty() {
        let message = format!("there is no log of job {id} on this machine");
        let next = "logs are stored where `rialto agent run` ran, under the hub's id of the job; `rialto job ls` shows the id";
        return Err(CliError::not_found(message, next));
    }
    let several = logs.len() > 1;
    let mut documents = Vec::new();
    for log in &mut logs {
        if several && !options.json {
            output::print_data(format!("==> {} <==", log.agent));
        }
        let mut text = String::new();
        let read = log.read_lines(true, |line| {
            if options.json {
                text.push_str(&format!("{line}\n"));
                return Ok(());
            }
            output::print_line(&escape_line(line))
        });
        read.map_err(|error| read_error(&log.path, &error))?;
        documents.push(json!({"agent": log.agent, "path": log.path, "text": text}));
    }
    if options.json {
        return Ok(output::print_data(json!({"id": id, "logs": documents})));
    }
    Ok(Exit::Ok)
}

/// The hub's id of a job given by the requester's own id; `None` if the hub cannot be asked, since
/// logs are also shown without a hub.
async fn hub_id(options: &HubOptions, id: &str) -> Option<String> {
    let (api, _) = options.client_with_key().ok()?;
    api.job(id, None).await.ok()?.parse().ok().map(|job| job.id)
}

/// All logs of a job, by its UUID, oldest first. Other job ids are not directory names.
pub fn find_logs(id: &str) -> CliResult<Vec<Log>> {
    let Some((home, id)) = Home::find().zip(id.parse::<Uuid>().ok()) else {
        return Ok(Vec::new());
    };
    let mut logs = Vec::new();
    for context in home.contexts()? {
        for agent in context.agents()? {
            let Some(key) = context.agent_key_path(&agent)? else { continue };
            // Running jobs are in one directory, ended jobs in the other.
            for directory in [JOBS, LOGS_DIR] {
                for path in logs_of_job(&key.with_file_name(directory), id)? {
                    let changed = path.metadata().and_then(|about| about.modified()).ok();
                    logs.push((changed, Log::new(agent.clone(), path)));
                }
            }
        }
    }
    logs.sort_by_key(|(changed, _)| *changed);
    Ok(logs.into_iter().map(|(_, log)| log).collect())
}

/// Whether this machine has a log of a job.
pub fn has_any(id: &str) -> bool {
    let is_written = |log: &Log| log.path.metadata().is_ok_and(|about| about.len() > 0);
    find_logs(id).is_ok_and(|logs| logs.iter().any(is_written))
}

/// An agent's logs of a job: one per assignment, in a directory whose name begins with the job's
/// id.
fn logs_of_job(jobs: &Path, id: Uuid) -> CliResult<Vec<PathBuf>> {
    let id = id.as_hyphenated().to_string();
    let is_its = |name: &String| name.split('.').next() == Some(id.as_str());
    let logs =
        list_dir(jobs)?.into_iter().filter(is_its).map(|name| jobs.join(name).join(LOG_FILE));
    Ok(logs.filter(|path| path.is_file()).collect())
}

/// Path of the log once the job has ended.
fn finished_log_path(path: &Path) -> PathBuf {
    let mut parts = path.iter().rev();
    let (Some(log), Some(job)) = (parts.next(), parts.next()) else { return path.to_owned() };
    let jobs = path.ancestors().nth(2).unwrap_or(path);
    jobs.with_file_name(LOGS_DIR).join(job).join(log)
}

impl Log {
    fn new(agent: String, path: PathBuf) -> Self {
        Self { agent, path, at: 0, partial_line: Vec::new() }
    }

    /// Passes the lines written since the last call to a callback; if the job is over, up to the end
    /// of the log. Ends when the callback fails.
    pub fn read_lines(
        &mut self,
        is_over: bool,
        mut print: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let mut lines = self.new_lines()?;
            let at_end = !is_over || lines.is_empty();
            if is_over && at_end {
                lines.extend(self.last_line());
            }
            if lines.iter().try_for_each(|line| print(line)).is_err() || at_end {
                return Ok(());
            }
        }
    }

    fn new_lines(&mut self) -> io::Result<Vec<String>> {
        let mut file = match File::open(&self.path) {
            // The file has moved: the job has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                File::open(finished_log_path(&self.path))?
            }
            file => file?,
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        self.at += file.take(CHUNK_MAX).read_to_end(&mut bytes)? as u64;
        let mut lines = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' => lines.push(self.end_line()),
                byte => self.partial_line.push(byte),
            }
            if self.partial_line.len() == LINE_MAX {
                lines.push(self.end_line());
            }
        }
        Ok(lines)
    }

    /// The last line, if it has no line end.
    fn last_line(&mut self) -> Option<String> {
        (!self.partial_line.is_empty()).then(|| self.end_line())
    }

    fn end_line(&mut self) -> String {
        let bytes = std::mem::take(&mut self.partial_line);
        String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(&bytes)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_log_is_read_line_by_line_as_it_grows() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("stderr");
        let mut file = File::create(&path).expect("made");
        let mut log = Log::new("a".to_owned(), path);
        assert!(log.new_lines().expect("readable").is_empty());
        file.write_all(b"one\r\ntw").expect("written");
        assert_eq!(log.new_lines().expect("readable"), ["one"]);
        file.write_all(b"o\nthr\xff").expect("written");
        assert_eq!(log.new_lines().expect("readable"), ["two"]);
        assert_eq!(log.last_line().as_deref(), Some("thr\u{fffd}"));
        assert_eq!(log.last_line(), None);
        file.write_all(&vec![b'x'; LINE_MAX + 1]).expect("written");
        assert_eq!(log.new_lines().expect("readable").len(), 1);
        assert_eq!(log.last_line().as_deref(), Some("x"));
    }
}
