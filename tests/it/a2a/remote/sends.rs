//! What its card and its server decide about a message: skill, types, extensions (R40, R46, R47, R49).

use serde_json::{Value, json};

use super::server::Puppet;
use crate::a2a::kit::{HIRE, id, state, text_message};
use crate::kit::TestHub;

#[tokio::test]
async fn of_several_skills_with_one_price_the_first_is_meant() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    puppet.change_card(|card| {
        let mut second = card["skills"][0].clone();
        second["id"] = "distance".into();
        card["skills"].as_array_mut().expect("skills").push(second);
    });
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.rich_client("client").await;
    let message = json!({"message": text_message("m-1", "to Lugano")});
    let (done, ()) =
        tokio::join!(hub.result(&geo.base, &client.key, "SendMessage", message.clone()), async {
            puppet.complete(&puppet.task().await, "Take the A2.")
        });
    assert_eq!(done["task"]["metadata"][HIRE]["skill"], "route", "{done}");
    assert_eq!(puppet.messages()[0]["metadata"][HIRE]["skill"], "route");
    // With two prices one has to be chosen.
    let prices = json!({"route": "0.25"});
    let body = json!({"card_url": puppet.card_url(), "name": "geo", "prices": prices});
    let reply = hub.register_card(Some(&geo.key), &body).await.expect(200);
    puppet.change_card(|card| {
        card["capabilities"]["extensions"] = json!([reply.at("/proof")]);
    });
    assert_eq!(hub.refresh("geo", &geo.key).await.expect(200).at("/proven"), true);
    let refused = hub.result(&geo.base, &client.key, "SendMessage", message).await;
    let told = &refused["message"]["metadata"][HIRE];
    assert_eq!(told["refused"], "CHOOSE_SKILL", "{refused}");
    assert_eq!(told["skills"], json!(["route", "distance"]));
    hub.stop().await;
}

#[tokio::test]
async fn the_accepted_modes_go_to_the_worker_and_its_parts_come_back_as_they_are() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let modes = json!(["text/plain", "image/*"]);
    let params = json!({"message": text_message("m-1", "to Lugano"),
        "configuration": {"acceptedOutputModes": modes}});
    let parts = json!([{"data": {"km": 42.0}, "mediaType": "application/json"}]);
    let (done, ()) =
        tokio::join!(hub.result(&geo.base, &client.key, "SendMessage", params), async {
            let task = puppet.task().await;
            puppet.artifact(&task, json!({"artifactId": "a", "parts": parts}), false);
            puppet.status(&task, "TASK_STATE_COMPLETED", None);
        });
    let sent: Vec<Value> =
        puppet.seen().iter().filter(|seen| seen.is_send()).map(|seen| seen.body.clone()).collect();
    assert_eq!(sent[0]["params"]["configuration"]["acceptedOutputModes"], modes);
    assert_eq!(done["task"]["artifacts"][0]["parts"], parts, "{done}");
    hub.stop().await;
}

#[tokio::test]
async fn data_without_a_stated_type_is_taken_in_both_versions() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    puppet.change_card(|card| card["defaultInputModes"] = json!(["text/plain"]));
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let new = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"n": 1}}]});
    hub.begin(&geo.base, &client.key, new.clone()).await;
    let old = |part: Value| {
        let message =
            json!({"kind": "message", "messageId": "m-2", "role": "user", "parts": [part]});
        let params = json!({"message": message, "configuration": {"blocking": false}});
        crate::a2a::kit::rpc(1, "message/send", params).to_string()
    };
    let send = async |body: String| {
        let more = [("a2a-version", "0.3")];
        hub.request(("POST", &geo.base), &client.key, &more, &body).await.expect(200)
    };
    let reply = send(old(json!({"kind": "data", "data": {"n": 1}}))).await;
    assert_eq!(reply.at("/result/kind"), "task", "{}", reply.text);
    // A stated one counts in both.
    let mut stated = new;
    stated["parts"][0]["mediaType"] = "application/json".into();
    let refused = hub.refusal(&geo.base, &client.key, "SendMessage", json!({"message": stated}));
    assert_eq!(refused.await.0, -32005);
    let file = json!({"bytes": "AAEC", "mimeType": "application/json"});
    let reply = send(old(json!({"kind": "file", "file": file}))).await;
    assert_eq!(reply.at("/error/code"), -32005, "{}", reply.text);
    hub.stop().await;
}

#[tokio::test]
async fn types_and_extensions_are_those_of_the_workers_card() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    puppet.change_card(|card| {
        card["defaultInputModes"] = json!(["text/*", "image"]);
        card["capabilities"]["extensions"] =
            json!([{"uri": "urn:example:signed", "required": true}, {"uri": "urn:example:other"}]);
    });
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let shown = hub.get(&geo.base, None).await.expect(200);
    assert_eq!(shown.at("/defaultInputModes"), json!(["text/*", "image"]));
    let call = |media_type: &str| {
        let part = json!({"raw": "AAEC", "mediaType": media_type});
        let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [part]});
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        crate::a2a::kit::rpc(1, "SendMessage", params).to_string()
    };
    let send = async |extensions: &str, media_type: &str| {
        let more = [("a2a-extensions", extensions)];
        let body = call(media_type);
        hub.request(("POST", &geo.base), &client.key, &more, &body).await.expect(200)
    };
    for extensions in ["", "urn:example:other"] {
        let reply = send(extensions, "text/plain").await;
        assert_eq!(reply.at("/error/code"), -32008, "{}", reply.text);
    }
    let named = "urn:example:signed";
    for media_type in ["application/json", "audio/wav", "imagery/png"] {
        let reply = send(named, media_type).await;
        assert_eq!(reply.at("/error/code"), -32005, "{media_type}: {}", reply.text);
    }
    for media_type in ["text/csv", "image/png"] {
        let task = send(named, media_type).await.at("/result/task");
        assert!(state(&task).starts_with("TASK_STATE_"), "{task}");
        assert!(!id(&task).is_empty());
    }
    // Its server is told which extensions the client uses.
    puppet.called("SendStreamingMessage", 2).await;
    let sends: Vec<_> = puppet.seen().into_iter().filter(|seen| seen.is_send()).collect();
    assert!(sends.iter().all(|seen| seen.header("a2a-extensions") == Some(named)), "{sends:?}");
    hub.stop().await;
}
