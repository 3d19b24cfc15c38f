//! Valid examples, shown to a caller that sent an invalid field.

/// A registration that succeeds as it is.
pub const REGISTRATION: &str = r#"{"agent_name":"Text-Analyst","owner_id":"acme","api_endpoint":"https://agent.example","skills":[{"skill_name":"analyze_text","description":"Finds names and numbers","cost_per_call":0.10,"input_schema":{"text":"string"},"output_schema":{"entities":"list"}}],"version":"0.1"}"#;

/// A complete job.
pub const JOB: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","skill_name":"analyze_text","input_data":{"text":"Revenue for Q3 was 42000"},"budget":0.15,"currency":"chorus_credits_v1"}"#;

/// A complete result.
pub const RESULT: &str = r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","agent_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f","status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.10,"execution_time_ms":1250,"error_message":null}"#;

/// A complete transfer.
pub const TRANSFER: &str = r#"{"transfer_id":"0e37df36-f698-41e6-8a1c-0d2f6e2c7a10","from_owner":"acme","to_owner":"globex","amount":0.10}"#;

/// A complete discovery query.
pub const DISCOVERY_QUERY: &str = r#"{"skill":"analyze_text","min_reputation":40,"max_cost":0.20}"#;

/// A complete heartbeat.
pub const HEARTBEAT: &str = r#"{"agent_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"}"#;

/// A complete account.
pub const ACCOUNT: &str = r#"{"owner_id":"acme"}"#;

/// A valid example for the named field; the whole body if no closer one is known.
pub fn example_for(field: &str) -> &'static str {
    let last = field.rsplit('/').next().unwrap_or_default();
    match last {
        "agent_id" => r#"{"agent_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"}"#,
        "job_id" => r#"{"job_id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}"#,
        "transfer_id" => r#"{"transfer_id":"0e37df36-f698-41e6-8a1c-0d2f6e2c7a10"}"#,
        "orchestrator_id" => r#"{"orchestrator_id":"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"}"#,
        "agent_name" => r#"{"agent_name":"Text-Analyst-3000"}"#,
        "owner_id" => r#"{"owner_id":"acme"}"#,
        "from_owner" => r#"{"from_owner":"acme"}"#,
        "to_owner" => r#"{"to_owner":"globex"}"#,
        "api_endpoint" => r#"{"api_endpoint":"https://agent.example/jobs"}"#,
        "callback_url" => r#"{"callback_url":"https://orchestrator.example/results"}"#,
        "skills" => r#"{"skills":[{"skill_name":"analyze_text","cost_per_call":0.10}]}"#,
        "skill_name" => r#"{"skill_name":"analyze_text"}"#,
        "description" => r#"{"description":"Finds names and numbers"}"#,
        "cost_per_call" => r#"{"cost_per_call":0.10}"#,
        "input_schema" => r#"{"input_schema":{"text":"string"}}"#,
        "output_schema" => r#"{"output_schema":{"entities":"list"}}"#,
        "version" => r#"{"version":"0.1"}"#,
        "timestamp_utc" => r#"{"timestamp_utc":"2026-02-11T14:15:09Z"}"#,
        "rotate_key" => r#"{"rotate_key":true}"#,
        "input_data" => r#"{"input_data":{"text":"Revenue for Q3 was 42000"}}"#,
        "output_data" => r#"{"output_data":{"entities":[]}}"#,
        "budget" => r#"{"budget":0.15}"#,
        "amount" => r#"{"amount":0.10}"#,
        "initial_balance" => r#"{"initial_balance":100.00}"#,
        "currency" => r#"{"currency":"chorus_credits_v1"}"#,
        "status" => r#"{"status":"SUCCESS"}"#,
        "execution_cost" => r#"{"execution_cost":0.10}"#,
        "execution_time_ms" => r#"{"execution_time_ms":1250}"#,
        "error_message" => r#"{"status":"SUCCESS","error_message":null}"#,
        "error_code" => r#"{"error_code":"EXECUTION_ERROR"}"#,
        "?skill" => r#""/discover?skill=analyze_text""#,
        "?min_reputation" => r#""/discover?skill=analyze_text&min_reputation=40""#,
        "?max_cost" => r#""/discover?skill=analyze_text&max_cost=0.20""#,
        "?min_jobs" => r#""/discover?skill=analyze_text&min_jobs=1""#,
        "?limit" => r#""?limit=50""#,
        "?offset" => r#""?offset=0""#,
        "?wait" => r#""?status=PENDING&wait=30""#,
        "?status" => r#""?status=PENDING""#,
        "?job_id" => r#""?job_id=f81d4fae-7dec-11d0-a765-00a0c91e6bf6""#,
        "?owner_id" => r#""?owner_id=acme""#,
        "skill" => r#"{"skill":"analyze_text"}"#,
        "min_reputation" => r#"{"min_reputation":40}"#,
        "max_cost" => r#"{"max_cost":0.20}"#,
        "min_jobs" => r#"{"min_jobs":1}"#,
        "limit" => r#"{"limit":50}"#,
        "offset" => r#"{"offset":0}"#,
        "Idempotency-Key" => r#""Idempotency-Key: 5f0c2a9e""#,
        _ if field.starts_with('?') => r#""/discover?skill=analyze_text""#,
        _ if field.starts_with("/skills/") => {
            r#"{"skill_name":"analyze_text","cost_per_call":0.10}"#
        }
        _ => REGISTRATION,
    }
}
