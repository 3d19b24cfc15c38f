//! The four bodies of registry: parsed or rejected by name, and the same in any member order.

use rialto_core::money::Credits;
use rialto_protocols::kit::canonical::write_canonical;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use rialto_protocols::registry::wire::{JobPost, RegisterBody, ResultPost, TransferPost};

use super::jcs::mirrored;

/// Checks the parsers of all four bodies.
pub fn registry(bytes: &[u8]) {
    if let Ok(register) = told(RegisterBody::read(bytes)) {
        for skill in &register.skills {
            bounds(skill.cost_per_call);
            ijson::read(skill.input_schema.as_bytes()).expect("a schema is JSON");
            ijson::read(skill.output_schema.as_bytes()).expect("a schema is JSON");
        }
    }
    // A result may contain numbers that are not valid JSON; its output is JSON all the same.
    if let Some(output) = told(ResultPost::read(bytes)).ok().and_then(|result| result.output_data) {
        ijson::read(output.as_bytes()).expect("an output is JSON");
    }
    let Ok(json) = ijson::read(bytes) else { return };
    let other = mirrored(&json);
    if let Ok(job) = told(JobPost::read(bytes)) {
        bounds(job.budget);
        ijson::read(job.input_data.as_bytes()).expect("an input is JSON");
        let again = JobPost::read(other.as_bytes()).expect("members in another order");
        assert_eq!(again.content, job.content, "the order of members changes the job");
    }
    if let Ok(result) = told(ResultPost::read(bytes)) {
        result.execution_cost.into_iter().for_each(bounds);
        let again = ResultPost::read(other.as_bytes()).expect("members in another order");
        assert_eq!(again.content, result.content, "the order of members changes the result");
    }
    if let Ok(transfer) = told(TransferPost::read(bytes)) {
        bounds(transfer.amount);
        let again = TransferPost::read(other.as_bytes()).expect("members in another order");
        assert_eq!(again.content, transfer.content, "the order of members changes the payment");
    }
    let (mut one, mut two) = (Vec::new(), Vec::new());
    write_canonical(&json, &mut one);
    write_canonical(&ijson::read(other.as_bytes()).expect("JSON"), &mut two);
    assert_eq!(one, two);
}

fn bounds(amount: Credits) {
    assert!((Credits::ZERO..=Credits::MAX).contains(&amount), "{amount:?} is out of bounds");
}

fn told<T>(read: Result<T, Malformed>) -> Result<T, ()> {
    read.map_err(|bad| assert!(!bad.message.is_empty(), "a refusal without a reason"))
}
