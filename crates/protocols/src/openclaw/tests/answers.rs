//! Tests of what the hub writes: errors, answers, views and events.

use super::*;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use crate::kit::raw_json;
use crate::openclaw::wire::answers::{
    self, ClaimRecorded, Done, Health, Published, ResultPublished, StatusTaken, Unregistered,
};
use crate::openclaw::wire::directory::{self, AgentEntry, AgentInfo};
use crate::openclaw::wire::error::{ErrorBody, Rejected};
use crate::openclaw::wire::request::{ApproveBody, CancelBody};
use crate::openclaw::wire::words::{State, Status};
use crate::openclaw::wire::{
    CollaborationResult, CommonMembers, Rejection, ReputationMetrics, Response, ResponseAnswer,
    ResultError, ResultOutcome, stream,
};
use crate::openclaw::{Code, Score};

const AT: Timestamp = Timestamp(1_774_000_800_000);
const MADE: Uuid = Uuid::from_u128(7);
const COMMON: CommonMembers = CommonMembers { correlation_id: MADE, timestamp: AT };
const TAIL: &str = r#""protocol_version":"1.0.0","correlation_id":"00000000-0000-0000-0000-000000000007","timestamp":"2026-03-20T10:00:00.000Z""#;

#[test]
fn an_error_has_the_form_of_the_book() {
    let failure = Failure::with_violations(vec!["priority must be between 1 and 10".to_owned()]);
    let error = r#""error":{"code":"VALIDATION_ERROR","message":"priority must be between 1 and 10","error_type":"permanent","retryable":false,"details":{"validation_errors":["priority must be between 1 and 10"]}}"#;
    assert_eq!(failure.write(MADE, AT), format!("{{{TAIL},{error}}}"));
    let read: ErrorBody = serde_json::from_str(&failure.write(MADE, AT)).expect("an error");
    assert_eq!(read.error.violations(), failure.violations);
    let busy = Failure::rate_limited("slow down", 7).write(MADE, AT);
    let read: ErrorBody = serde_json::from_str(&busy).expect("an error");
    assert!(read.error.retryable && read.error.retry_after_seconds == Some(7));
    assert_eq!(read.error.error_type.as_str(), "transient");
    assert!(read.error.violations().is_empty());
    for (failure, http, code) in [
        (Failure::too_large(), 413, Code::TooLarge),
        (Failure::encoded_body(), 415, Code::UnsupportedEncoding),
        (Failure::disk_full(), 507, Code::Unavailable),
        (Failure::internal("e1"), 500, Code::Unavailable),
        (Failure::not_found("agent"), 404, Code::NotFound),
    ] {
        assert_eq!((failure.http_status, failure.code), (http, code));
        assert!(ijson::read(failure.write(MADE, AT).as_bytes()).is_ok());
    }
    assert!(Failure::still_running("soon").retryable);
}

#[test]
fn answers_are_written_as_the_book_shows_them() {
    let json = |value: &dyn erased::Json| value.text();
    let text = |text: &str| text.to_owned();
    let published = Published::new(
        COMMON,
        text("published"),
        text("a"),
        Some(text("rk_1")),
        None,
        Published::format_time(AT),
    );
    assert_eq!(
        json(&published),
        format!(
            r#"{{"status":"published","agent_id":"a","api_key":"rk_1","published_at":"2026-03-20T10:00:00.000Z",{TAIL}}}"#
        )
    );
    let taken = StatusTaken::new(COMMON, text(StatusTaken::STATUS), text("a"), true, false, vec![]);
    assert_eq!(
        json(&taken),
        format!(
            r#"{{"status":"accepted","agent_id":"a","applied":true,"late":false,"warnings":[],{TAIL}}}"#
        )
    );
    let score = |text| Score::parse(text).expect("a score");
    let claim = ClaimRecorded::of(COMMON, text("a"), score("0.93"), Some(score("0.9235")));
    assert_eq!(
        json(&claim),
        format!(
            r#"{{"status":"recorded_as_claim","agent_id":"a","claimed_score":0.93,"hub_score":0.9235,"differs":false,{TAIL}}}"#
        )
    );
    let read: ClaimRecorded = serde_json::from_str(&json(&claim)).expect("a claim");
    assert_eq!(read.hub_score.expect("a score").get(), "0.9235");
    let none = ClaimRecorded::of(COMMON, text("a"), score("1"), None);
    assert!(json(&none).contains(r#""hub_score":null,"differs":false"#));
    let result = ResultPublished::new(COMMON, text("published"), text("c"), true);
    assert_eq!(
        json(&result),
        format!(r#"{{"status":"published","collaboration_id":"c","output_valid":true,{TAIL}}}"#)
    );
    assert_eq!(
        json(&Done::new(COMMON, text(Done::APPROVED))),
        format!(r#"{{"status":"approved",{TAIL}}}"#)
    );
    assert_eq!(
        json(&Unregistered::new(COMMON, text(Unregistered::STATUS), text("a"))),
        format!(r#"{{"status":"unregistered","agent_id":"a",{TAIL}}}"#)
    );
    assert_eq!(
        json(&Health::new(COMMON, text("ok"), text("h"), 1)),
        format!(r#"{{"status":"ok","hub_id":"h","agents":1,{TAIL}}}"#)
    );
}

/// Serialization with the types erased.
mod erased {
    pub trait Json {
        fn text(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn text(&self) -> String {
            serde_json::to_string(self).expect("JSON")
        }
    }
}

#[test]
fn an_agent_is_shown_with_what_the_hub_knows() {
    let text = example("identity: Example").to_string().replacen(
        '{',
        r#"{"endpoint":"https://a.example/","stale":true,"#,
        1,
    );
    let identity = ijson::read(text.as_bytes()).expect("JSON");
    let metrics = ReputationMetrics {
        total_collaborations: Some(3),
        success_rate: Score::new(500_000),
        ..ReputationMetrics::default()
    };
    let mut standing = AgentInfo {
        report: None,
        effective_status: Status::Busy,
        stale: false,
        active_collaborations: 2,
        score: Score::new(923_500),
        metrics,
        registered_at: AT,
        native: None,
    };
    let shown = directory::write_agent(&identity, &standing, COMMON);
    let value: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(value["trust_signals"]["reputation_score"], 0.9235);
    assert_eq!(value["trust_signals"]["total_collaborations"], 3);
    assert_eq!(value["claimed_trust_signals"]["reputation_score"], 0.92);
    assert_eq!(value["effective_status"], "busy");
    assert_eq!(value["stale"], false);
    assert_eq!(value["status"]["current_status"], "idle");
    assert_eq!(value["endpoint"], Value::Null);
    assert!(ijson::read(shown.as_bytes()).is_ok(), "no member twice");
    assert!(read_as(Kind::Identity, &shown).is_ok(), "it is still an identity");
    let entry: AgentEntry = serde_json::from_str(&shown).expect("an entry");
    assert_eq!(entry.capabilities.advertised_capabilities.len(), 2);
    standing.score = None;
    standing.native = Some(("agora", "did:key:z6Mk"));
    let shown = directory::write_agent(&identity, &standing, COMMON);
    assert!(read_as(Kind::Identity, &shown).is_ok(), "also without a score: {shown}");
    let entry: AgentEntry = serde_json::from_str(&shown).expect("an entry");
    assert_eq!(entry.trust_signals.reputation_score.map(|score| score.get().to_owned()), None);
    assert_eq!(entry.native_id.as_deref(), Some("did:key:z6Mk"));
    let page = directory::Page::new(COMMON, vec![raw_json::verbatim(&shown)], None);
    let page: directory::Page = serde_json::from_str(&erased::Json::text(&page)).expect("a page");
    assert_eq!(page.agents[0].get(), shown);
}

#[test]
fn a_collaboration_is_shown_with_its_messages() {
    let request = example("collaboration_request: Example").to_string();
    let view = answers::CollaborationView::new(
        COMMON,
        None,
        State::AwaitingResponse,
        raw_json::verbatim(&request),
        None,
        None,
    );
    let text = erased::Json::text(&view);
    assert!(
        text.starts_with(r#"{"collaboration_id":null,"state":"awaiting_response","request":{"#)
    );
    let read: answers::CollaborationView = serde_json::from_str(&text).expect("a view");
    assert_eq!(read.request.get(), request);
    let listed = answers::CollaborationSummary {
        collaboration_id: Some("c".to_owned()),
        state: State::Running,
        request: raw_json::verbatim(&request),
        response: None,
        result: None,
    };
    let page = answers::CollaborationPage::new(COMMON, vec![listed], Some("n".to_owned()));
    let read: answers::CollaborationPage =
        serde_json::from_str(&erased::Json::text(&page)).expect("a page");
    assert_eq!((read.collaborations.len(), read.next_cursor.as_deref()), (1, Some("n")));
}

#[test]
fn a_request_is_pushed_in_its_own_words() {
    let text = r#"{"request_id":"r", "x":1.50,"accepted":"no"}"#;
    let json = ijson::read(text.as_bytes()).expect("JSON");
    assert_eq!(
        stream::write_request(&json, Some(MADE), true),
        r#"{"request_id":"r","x":1.50,"collaboration_id":"00000000-0000-0000-0000-000000000007","accepted":true,"protocol_version":"1.0.0"}"#
    );
    assert_eq!(
        stream::write_request(&json, None, false),
        r#"{"request_id":"r","x":1.50,"accepted":false,"protocol_version":"1.0.0"}"#
    );
    assert!(
        stream::write_message(&json).ends_with(r#""accepted":"no","protocol_version":"1.0.0"}"#)
    );
}

fn response(answer: ResponseAnswer) -> Response {
    Response {
        request_id: MADE,
        responder_agent_id: MADE,
        answer,
        correlation_id: MADE,
        timestamp: AT,
        result: None,
    }
}

#[test]
fn what_the_hub_says_passes_its_own_checks() {
    let sentence = "trends[0].relevance_score must be between 0.0 and 1.0";
    for (rejection, part) in [
        (
            Rejection::invalid_input([sentence]),
            r#""details":{"validation_errors":["trends[0].relevance_score must be between 0.0 and 1.0"]},"retryable":false"#,
        ),
        (
            Rejection::at_capacity(5, 5, 60),
            r#""details":{"current_tasks":5,"max_tasks":5},"retryable":true,"retry_after_seconds":60"#,
        ),
        (
            Rejection::insufficient_credits(60),
            r#""details":{"reason":"insufficient_credits"},"retryable":true"#,
        ),
        (
            Rejection::new(Rejected::DeadlineTooSoon, "too soon"),
            r#""code":"deadline_too_soon","message":"too soon","retryable":false"#,
        ),
    ] {
        let response = response(ResponseAnswer::Rejected(rejection));
        let text = response.write();
        assert!(text.contains(part), "{text}");
        let Ok(AnyMessage::Response(back)) = AnyMessage::read(text.as_bytes()) else {
            panic!("{text}")
        };
        assert_eq!(back.body, response);
    }
    let mut accepted =
        response(ResponseAnswer::Accepted { collaboration_id: MADE, estimated_completion: None });
    accepted.result = Some(r#"{"result_status":"completed"}"#.into());
    let Ok(back) = read_as(Kind::Response, &accepted.write()) else { panic!("accepted") };
    assert!(matches!(back, AnyMessage::Response(back) if back.body == accepted));
    for outcome in [
        ResultOutcome::Completed { output_data: r#"{"a":[1.50]}"#.into() },
        ResultOutcome::Failed(ResultError::deadline_exceeded()),
        ResultOutcome::Cancelled { reason: Some("no \"need\"".to_owned()) },
        ResultOutcome::Cancelled { reason: None },
    ] {
        let output = CollaborationResult {
            collaboration_id: MADE,
            request_id: MADE,
            responder_agent_id: MADE,
            outcome,
            execution_duration_ms: Some(5),
            completed_at: Some(AT),
            correlation_id: MADE,
            timestamp: AT,
        };
        let Ok(AnyMessage::Result(back)) = AnyMessage::read(output.write().as_bytes()) else {
            panic!("{output:?}")
        };
        assert_eq!(back.body, output);
    }
}

#[test]
fn the_small_bodies_are_read() {
    assert!(ApproveBody::read(br#"{"approved":true}"#).expect("approved").approved);
    assert_eq!(CancelBody::read(b"").expect("nothing"), CancelBody::default());
    assert_eq!(CancelBody::read(br#"{"reason":"x"}"#).expect("x").reason.as_deref(), Some("x"));
    for body in [
        &b"{}"[..],
        b"[]",
        br#"{"approved":"yes"}"#,
        b"x",
        br#"{"approved":true,"protocol_version":"2.0.0"}"#,
    ] {
        assert_eq!(ApproveBody::read(body).expect_err("wrong").http_status, 400);
    }
    assert_eq!(
        CancelBody::read(br#"{"reason":7}"#).expect_err("7").violations,
        ["reason must be a string"]
    );
}

#[test]
fn a_reputation_is_shown_with_the_claim_beside_it() {
    let (update, claim) = (example("Periodic Update"), example("Collaboration Completed"));
    let (update, claim) = (update.to_string(), claim.to_string());
    let update = ijson::read(update.as_bytes()).expect("JSON");
    let claim = ijson::read(claim.as_bytes()).expect("JSON");
    let shown: Value =
        serde_json::from_str(&directory::write_reputation(&update, Some(&claim))).expect("JSON");
    assert_eq!(shown["reputation_update"]["reputation_score"], 0.92);
    assert_eq!(shown["claimed"]["reputation_update"]["reputation_score"], 0.93);
    assert!(directory::write_reputation(&update, None).contains(r#""claimed":null"#));
}

#[test]
fn an_answer_belongs_to_the_request_with_both_ids() {
    let Ok(AnyMessage::Request(request)) =
        AnyMessage::read(example("collaboration_request: Example").to_string().as_bytes())
    else {
        panic!("no request")
    };
    let said = request.body;
    assert_eq!(wire::check_belongs(&said, said.request_id, said.correlation_id), Ok(()));
    let told = wire::check_belongs(&said, MADE, MADE).expect_err("two others").violations;
    assert_eq!(told, ["request_id must be the request's", "correlation_id must be the request's"]);
}
