//! Where each secret is shown, and its readers there.

/// Secret, place, and readers; a star stands for all of them.
#[rustfmt::skip]
pub const SHOWN: &[(&str, &str, &str)] = &[
    ("a rival's offer", "GET /v1/jobs/{id}", "requester"),
    ("a rival's offer", "GET /v1/jobs/{id}/offers", "requester, rival"),

    ("an offer", "GET /v1/jobs/{id}", "requester"),
    ("an offer", "GET /v1/jobs/{id}/offers", "requester, worker"),

    ("body of a message", "GET /agent/inbox", "requester"),
    ("body of a message", "GET /agent/messages", "requester, worker"),
    ("body of a message", "GET /openclaw/stream", "requester"),
    ("body of a message", "GET /relay/agent/inbox", "requester"),
    ("body of a message", "GET /relay/agent/messages", "requester, worker"),
    ("body of a message", "GET /v1/events", "requester"),
    ("body of a message", "GET /v1/inbox", "requester"),

    ("body of a note", "GET /agora/inbox", "working key"),
    ("body of a note", "GET /agora/messages", "working key"),

    ("cost of an offer", "GET /agora/inbox", "asking key"),
    ("cost of an offer", "GET /agora/messages", "asking key"),
    ("cost of an offer", "GET /agora/requests/{id}", "asking key, working key"),

    ("data of a result", "GET /agora/inbox", "asking key"),
    ("data of a result", "GET /agora/messages", "asking key"),
    ("data of a result", "GET /v1/jobs/{id}/trace", "asking key, working key"),

    ("input of a collaboration", "GET /openclaw/collaborations", "asking node, working node"),
    ("input of a collaboration", "GET /openclaw/collaborations/{id}", "asking node, working node"),
    ("input of a collaboration", "GET /v1/jobs/{id}", "asking node, working node"),
    ("input of a collaboration", "GET /v1/jobs/{id}/trace", "asking node, working node"),

    ("input of a job", "GET /openclaw/collaborations", "requester, worker"),
    ("input of a job", "GET /openclaw/collaborations/{id}", "requester, worker"),
    ("input of a job", "GET /v1/jobs/{id}", "requester, worker"),
    ("input of a job", "GET /v1/jobs/{id}/trace", "requester, worker"),

    ("input of a job for the market", "GET /openclaw/collaborations", "requester"),
    ("input of a job for the market", "GET /openclaw/collaborations/{id}", "requester"),
    ("input of a job for the market", "GET /v1/jobs/{id}", "requester"),
    ("input of a job for the market", "GET /v1/jobs/{id}/trace", "requester"),

    ("input of a job that waits", "GET /openclaw/collaborations", "requester, worker"),
    ("input of a job that waits", "GET /openclaw/collaborations/{id}", "requester, worker"),
    ("input of a job that waits", "GET /openclaw/stream", "worker"),
    ("input of a job that waits", "GET /registry/agents/{agent_id}/jobs", "worker"),
    ("input of a job that waits", "GET /v1/jobs/{id}", "requester, worker"),
    ("input of a job that waits", "GET /v1/jobs/{id}/trace", "requester, worker"),
    ("input of a job that waits", "GET /v1/work", "worker"),

    ("input of a job to bid for", "GET /openclaw/collaborations", "requester"),
    ("input of a job to bid for", "GET /openclaw/collaborations/{id}", "requester"),
    ("input of a job to bid for", "GET /v1/jobs/{id}", "requester, rival, worker"),

    ("params of a request", "GET /agora/inbox", "working key"),
    ("params of a request", "GET /agora/messages", "working key"),
    ("params of a request", "GET /v1/jobs/{id}/trace", "asking key, working key"),

    ("params of a request to two", "GET /agora/inbox", "rival key, working key"),
    ("params of a request to two", "GET /agora/messages", "rival key, working key"),
    ("params of a request to two", "GET /v1/jobs/{id}/trace", "asking key"),

    ("payload of a task", "GET /clara/cu/result/{message}", "*"),
    ("payload of a task", "GET /clara/cu/results/{process}", "*"),
    ("payload of a task", "GET /clara/result/{message}", "*"),
    ("payload of a task", "GET /clara/results/{process}", "*"),

    ("result of a collaboration", "GET /jobs/{job_id}", "asking node, working node"),
    ("result of a collaboration", "GET /openclaw/collaborations", "asking node, working node"),
    ("result of a collaboration", "GET /openclaw/collaborations/{id}", "asking node, working node"),
    ("result of a collaboration", "GET /openclaw/stream", "asking node"),
    ("result of a collaboration", "GET /registry/jobs/{job_id}", "asking node, working node"),
    ("result of a collaboration", "GET /v1/inbox/delivery", "asking node"),
    ("result of a collaboration", "GET /v1/jobs/{id}", "asking node, working node"),
    ("result of a collaboration", "GET /v1/jobs/{id}/trace", "asking node, working node"),

    ("result of a job", "GET /jobs/{job_id}", "requester, worker"),
    ("result of a job", "GET /openclaw/collaborations", "requester, worker"),
    ("result of a job", "GET /openclaw/collaborations/{id}", "requester, worker"),
    ("result of a job", "GET /openclaw/stream", "requester"),
    ("result of a job", "GET /registry/jobs/{job_id}", "requester, worker"),
    ("result of a job", "GET /v1/inbox/delivery", "requester"),
    ("result of a job", "GET /v1/jobs/{id}", "requester, worker"),
    ("result of a job", "GET /v1/jobs/{id}/trace", "requester, worker"),

    ("result of a job for the market", "GET /jobs/{job_id}", "requester"),
    ("result of a job for the market", "GET /openclaw/collaborations", "requester"),
    ("result of a job for the market", "GET /openclaw/collaborations/{id}", "requester"),
    ("result of a job for the market", "GET /openclaw/stream", "requester"),
    ("result of a job for the market", "GET /registry/jobs/{job_id}", "requester"),
    ("result of a job for the market", "GET /v1/jobs/{id}", "requester"),
    ("result of a job for the market", "GET /v1/jobs/{id}/trace", "requester"),

    ("result of a task", "GET /clara/cu/result/{message}", "*"),
    ("result of a task", "GET /clara/cu/results/{process}", "*"),
    ("result of a task", "GET /clara/result/{message}", "*"),
    ("result of a task", "GET /clara/results/{process}", "*"),

    ("text of an envelope", "GET /agent/inbox", "requester"),
    ("text of an envelope", "GET /agent/messages", "requester, worker"),
    ("text of an envelope", "GET /messages/{trace_id}", "requester, worker"),
    ("text of an envelope", "GET /openclaw/stream", "requester"),
    ("text of an envelope", "GET /relay/agent/inbox", "requester"),
    ("text of an envelope", "GET /relay/agent/messages", "requester, worker"),
    ("text of an envelope", "GET /relay/messages/{trace_id}", "requester, worker"),
    ("text of an envelope", "GET /v1/events", "requester"),
    ("text of an envelope", "GET /v1/inbox", "requester"),
];
