//! Property tests that hold for every message.

use super::*;
use proptest::prelude::*;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use crate::openclaw::wire::words::{ErrorType, Status};
use crate::openclaw::wire::{ReportedStatus, Request, StatusDetails, StatusUpdate};

/// Any JSON, small.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("[a-z_]{1,8}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every value of a document, as a JSON pointer.
fn places(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                all.push(format!("{at}/{name}"));
                places(inner, format!("{at}/{name}"), all);
            }
        }
        Value::Array(items) => {
            for (n, inner) in items.iter().enumerate() {
                places(inner, format!("{at}/{n}"), all);
            }
        }
        _ => {}
    }
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0..=253_402_300_799_999_i64).prop_map(Timestamp)
}

fn id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused(value in json()) {
        let text = value.to_string();
        let _ = AnyMessage::read(text.as_bytes());
        for kind in Kind::ALL {
            prop_assert!(read_as(*kind, &text).is_err());
        }
    }

    #[test]
    fn a_message_with_anything_anywhere_is_read_or_refused(
        which in 0..13_usize,
        place in any::<prop::sample::Index>(),
        value in json(),
    ) {
        let (_, kind, text) = examples().swap_remove(which);
        let mut body: Value = serde_json::from_str(&text).expect("JSON");
        let mut all = Vec::new();
        places(&body, String::new(), &mut all);
        *body.pointer_mut(&all[place.index(all.len())]).expect("a place") = value;
        match read_as(kind, &body.to_string()) {
            Ok(_) => {}
            Err(failure) => {
                prop_assert_eq!(failure.http_status, 400);
                prop_assert!(!failure.violations.is_empty());
                let answer = failure.write(Uuid::nil(), Timestamp(0));
                prop_assert!(ijson::read(answer.as_bytes()).is_ok());
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = AnyMessage::read(&body);
    }

    #[test]
    fn a_request_that_is_written_is_read(
        ids in (id(), id(), id()),
        times in (time(), proptest::option::of(time())),
        capability_id in "[a-zé_]{1,20}",
        idempotency_key in proptest::option::of("\\PC{0,40}"),
        priority in proptest::option::of(1..=10_u8),
        responder_agent_id in proptest::option::of(id()),
        budget in proptest::option::of(0..=1_000_000_000_000_000_i64),
        input in proptest::collection::hash_map("[a-z]{1,5}", any::<i32>(), 0..4),
    ) {
        let request = Request {
            request_id: ids.0,
            requester_agent_id: ids.1,
            capability_id,
            input_data: serde_json::to_string(&input).expect("JSON").into(),
            idempotency_key,
            deadline: times.1,
            priority,
            responder_agent_id,
            budget: budget.map(Credits::from_micros),
            correlation_id: ids.2,
            timestamp: times.0,
        };
        let Ok(AnyMessage::Request(back)) = AnyMessage::read(request.write().as_bytes()) else {
            return Err(TestCaseError::fail(request.write()));
        };
        prop_assert_eq!(back.body, request);
    }

    #[test]
    fn a_status_that_is_written_is_read(
        ids in (id(), id()),
        times in (time(), time(), time()),
        status in prop::sample::select(Status::ALL),
        previous_status in proptest::option::of(prop::sample::select(Status::ALL)),
        tasks in 0..1_000_i64,
        text in "\\PC{0,40}",
    ) {
        let details = match status {
            Status::Idle => StatusDetails::default(),
            Status::Busy => StatusDetails { active_tasks: Some(tasks), ..StatusDetails::default() },
            Status::Error => StatusDetails {
                error_code: Some(text.clone()),
                error_message: Some(text),
                error_type: Some(ErrorType::Permanent),
                ..StatusDetails::default()
            },
            Status::Maintenance => {
                StatusDetails { maintenance_until: Some(times.2), ..StatusDetails::default() }
            }
        };
        let update = StatusUpdate {
            agent_id: ids.0,
            report: ReportedStatus { status, at: times.0, details },
            previous_status,
            correlation_id: ids.1,
            timestamp: times.1,
        };
        let Ok(AnyMessage::Status(back)) = AnyMessage::read(update.write().as_bytes()) else {
            return Err(TestCaseError::fail(update.write()));
        };
        prop_assert_eq!(back.body, update);
    }
}
