//! Money: transfers between owners, grants by the operator, and payments that are not covered.

use serde_json::json;

use super::cast::{Cast, cents_value};
use crate::cluster::client::{Client, Reply, Request, cents as cents_of};
use crate::cluster::history::Operation;
use crate::kit::{Agent, operator_key};

/// A transfer that its id identifies.
fn transfer(client: &mut Client, from: &Agent, to: &Agent, cents: u64) -> Request {
    let key = client.fresh_key();
    let (payer, payee) = (from.owner.clone(), to.owner.clone());
    let body = json!({"transfer_id": key, "from_owner": payer, "to_owner": payee,
        "amount": cents_value(cents)});
    let operation = Operation::Transfer { from: payer, to: payee, cents };
    Request::new(operation, key, "/registry/transfer").bearer(&from.key).json(&body)
}

/// Pays the other payers. Sometimes the same payment is sent to all nodes at once.
pub async fn pay(mut client: Client, cast: Cast, payer: usize) {
    let mut number = payer as u64;
    while !client.is_over() {
        number += 1;
        let payee = (payer + 1 + client.dice.roll(2) as usize) % cast.payers.len();
        let cents = 1 + client.dice.roll(500);
        let request = transfer(&mut client, &cast.payers[payer], &cast.payers[payee], cents);
        let reply = match number % 4 {
            0 => client.run_everywhere(&request.with_key()).await,
            1 => client.run(&request.with_key()).await,
            _ => client.run(&request).await,
        };
        expect(&client, reply.as_ref(), true, "a payment that is covered");
        client.pause(4).await;
    }
}

/// The only client that spends of its account: after each answer it knows what is there. What was
/// granted at one node can be spent at another at once, and once only.
pub async fn spend(mut client: Client, cast: Cast) {
    let (own, sink) = (&cast.spender, &cast.payers[2]);
    // A grant without an answer may still be on its way, so an empty account may fill by itself.
    let (mut cents, mut is_certain) = (0, true);
    while !client.is_over() {
        // A different amount each time, so that a grant can be told from the others.
        cents += 1;
        let operation = Operation::Grant { owner: own.owner.clone(), cents };
        let body = json!({"owner": own.owner, "amount": cents_value(cents)});
        let mut grant = Request::new(operation, client.fresh_key(), "/v1/operator/grants");
        grant = grant.bearer(&operator_key()).json(&body);
        let granted = match cents % 3 {
            0 => client.run(&grant.with_key()).await,
            _ => {
                let node = client.any_node();
                client.attempt(node, &grant).await
            }
        };
        expect(&client, granted.as_ref(), true, "a grant");
        is_certain &= granted.is_some();
        let available = match granted {
            Some(_) => Some(cents),
            None => available(&mut client, own).await,
        };
        if let Some(available @ 1..) = available {
            let request = transfer(&mut client, own, sink, available);
            let reply = client.run(&request).await;
            expect(&client, reply.as_ref(), true, "a payment of what is there");
        }
        if is_certain {
            let request = transfer(&mut client, own, sink, 1);
            let reply = client.run(&request).await;
            expect(&client, reply.as_ref(), false, "a payment of an empty account");
        }
        client.pause(10).await;
    }
}

/// What an account has, as far as a node says.
async fn available(client: &mut Client, own: &Agent) -> Option<u64> {
    let path = format!("/v1/accounts/{}", own.owner.replace(' ', "%20"));
    let node = client.any_node();
    let (seen, ..) = client.read(node, &path, Some(&operator_key())).await?;
    Some(cents_of(&seen["available"]))
}

fn expect(client: &Client, reply: Option<&Reply>, done: bool, what: &str) {
    if let Some(reply) = reply.filter(|reply| reply.is_done() != done) {
        let expected = if done { "refused" } else { "accepted" };
        let text = format!("{what} was {expected} at {}: {}", reply.node, reply.text);
        client.round.history.violation(text);
    }
}
