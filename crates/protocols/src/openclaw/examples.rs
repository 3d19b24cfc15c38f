//! Valid example messages, shown in errors about invalid ones (C10).

use super::kind::Kind;

impl Kind {
    /// A short valid message of this kind.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Identity => {
                r#"{"agent_id":"550e8400-e29b-41d4-a716-446655440000","agent_name":"chimera-content-node-001","agent_type":"autonomous_content_node","version":"1.0.0","capabilities":{"advertised_capabilities":[{"capability_id":"consume_trends","capability_name":"Trend Consumption","description":"Accepts trend data","category":"trend_consumption"}],"input_schemas":{"consume_trends":{"type":"object","required":["trends"]}},"output_schemas":{}},"status":{"current_status":"idle","status_timestamp":"2026-02-06T16:00:00Z"}}"#
            }
            Self::Status => {
                r#"{"agent_id":"550e8400-e29b-41d4-a716-446655440000","status_update":{"current_status":"busy","status_timestamp":"2026-02-06T16:10:00Z","status_details":{"active_tasks":3}},"correlation_id":"770e8400-e29b-41d4-a716-446655440002","timestamp":"2026-02-06T16:10:00Z"}"#
            }
            Self::Reputation => {
                r#"{"agent_id":"550e8400-e29b-41d4-a716-446655440000","reputation_update":{"update_type":"periodic_update","reputation_score":0.92,"update_timestamp":"2026-02-06T17:00:00Z"},"correlation_id":"cc0e8400-e29b-41d4-a716-446655440007","timestamp":"2026-02-06T17:00:00Z"}"#
            }
            Self::Request => {
                r#"{"request_id":"dd0e8400-e29b-41d4-a716-446655440008","requester_agent_id":"ee0e8400-e29b-41d4-a716-446655440009","capability_id":"consume_trends","input_data":{"trends":[]},"correlation_id":"110e8400-e29b-41d4-a716-446655440011","priority":3,"timestamp":"2026-02-06T16:30:00Z"}"#
            }
            Self::Response => {
                r#"{"request_id":"dd0e8400-e29b-41d4-a716-446655440008","responder_agent_id":"550e8400-e29b-41d4-a716-446655440000","response_status":"accepted","correlation_id":"110e8400-e29b-41d4-a716-446655440011","collaboration_id":"220e8400-e29b-41d4-a716-446655440012","timestamp":"2026-02-06T16:30:05Z"}"#
            }
            Self::Result => {
                r#"{"collaboration_id":"220e8400-e29b-41d4-a716-446655440012","request_id":"dd0e8400-e29b-41d4-a716-446655440008","responder_agent_id":"550e8400-e29b-41d4-a716-446655440000","result_status":"completed","correlation_id":"110e8400-e29b-41d4-a716-446655440011","output_data":{},"timestamp":"2026-02-06T16:33:20Z"}"#
            }
        }
    }
}
