//! Handles one job: reads it from standard input, writes the result to standard output.

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job: Value = serde_json::from_reader(std::io::stdin())?; // job_id, skill, input, requester, budget, deadline
    let text = job["input"]["text"].as_str().ok_or("the input has no text")?;
    eprintln!("{} characters to shout", text.chars().count()); // the job's log
    println!("{}", json!({ "text": text.to_uppercase() }));
    Ok(()) // Exit status 0: done. 75: try another worker. Anything else: failed.
}
