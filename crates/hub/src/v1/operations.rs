//! Every operation of this API, one row each.

use rialto_protocols::adapter::Access::{
    AnyAgent, AnyAgentOrOperator, Operator, OwnerOrOperator, Public,
};
use rialto_protocols::adapter::fidelity::Trace;
use rialto_protocols::adapter::operation::{delete, get, post};
use rialto_protocols::adapter::{HubContext, Operation};

use super::agents::view::AgentView;
use super::examples;
use super::jobs::view::JobView;
use super::page::Page;
use super::params::{AgentRef, DeliveryRef, JobRef, JobUuid, KeyRef, OwnerRef};
use super::{
    accounts, agents, delivery_preview, events, inbox, jobs, keys, ledger, me, messages, operator,
    presence, webhooks, work,
};

/// The operations. A path without a row does not exist.
pub fn operations() -> Vec<Operation<HubContext>> {
    vec![
        get("/v1/agents", Public, agents::list_agents)
            .summary("List agents; with `?skill=`, best match first")
            .as_is()
            .query::<agents::AgentQuery>()
            .responds::<Page<AgentView>>(200, "A page of agents"),
        get("/v1/agents/{id}", Public, agents::show_agent)
            .summary("Show an agent, by number or any of its names")
            .path_param::<AgentRef>()
            .responds::<AgentView>(200, "The agent"),
        get("/v1/agents/{id}/reputation", Public, agents::reputation::show_reputation)
            .summary("Show an agent's scores and the numbers they are computed from")
            .path_param::<AgentRef>()
            .responds::<agents::reputation::ReputationView>(200, "Its scores"),
        get("/v1/me", AnyAgent, me::show_me)
            .summary("The caller's agent, account, inbox, work")
            .responds::<me::MeView>(200, "The caller"),
        delete("/v1/me", AnyAgent, presence::unregister)
            .summary("Unregister the caller; its id stays reserved")
            .responds::<presence::StatusResponse>(200, "Unregistered"),
        post("/v1/me/status", AnyAgent, presence::set_status)
            .summary("Set the caller's availability")
            .request::<presence::StatusBody>(examples::STATUS)
            .responds::<presence::StatusResponse>(200, "The new status"),
        get("/v1/jobs", AnyAgent, jobs::list::list_jobs)
            .summary("List the caller's jobs, as requester or worker")
            .query::<jobs::list::JobsQuery>()
            .responds::<Page<JobView>>(200, "A page of jobs"),
        post("/v1/jobs", AnyAgent, jobs::open::open_job)
            .summary("Open a job; `?wait=` waits for its end")
            .query::<jobs::WaitQuery>()
            .request::<jobs::open::OpenJobBody>(examples::JOB)
            .responds::<JobView>(201, "The job, as far as it got"),
        // Operators see everything but input, result and callback.
        get("/v1/jobs/{id}", AnyAgentOrOperator, jobs::show_job)
            .summary("Show a job that the caller may see")
            .path_param::<JobRef>()
            .query::<jobs::WaitQuery>()
            .responds::<JobView>(200, "The job"),
        get(jobs::trace::PATH, AnyAgentOrOperator, jobs::trace::show_trace)
            .summary("Show how a job was translated")
            .path_param::<JobRef>()
            .responds::<Trace>(200, "The trace"),
        post("/v1/jobs/{id}/cancel", AnyAgent, jobs::cancel::cancel_job)
            .summary("Cancel a job, as its requester")
            .path_param::<JobRef>()
            .optional_request::<jobs::cancel::CancelBody>(examples::CANCEL)
            .responds::<JobView>(200, "The cancelled job"),
        get("/v1/jobs/{id}/offers", AnyAgent, jobs::offers::list_offers)
            .summary("List the offers for a job that the caller may see")
            .path_param::<JobRef>()
            .responds::<jobs::offers::OfferList>(200, "The offers"),
        post("/v1/jobs/{id}/offers", AnyAgent, jobs::offers::make_offer)
            .summary("Make an offer for a job")
            .path_param::<JobUuid>()
            .request::<jobs::offers::OfferBody>(examples::OFFER)
            .responds::<jobs::offers::OfferView>(201, "The offer"),
        post("/v1/jobs/{id}/accept", AnyAgent, jobs::offers::accept_offer)
            .summary("Accept an offer by its id, or by agent and price, as the requester")
            .path_param::<JobRef>()
            .request::<jobs::offers::AcceptBody>(examples::ACCEPT)
            .responds::<JobView>(200, "The assigned job"),
        get("/v1/work", AnyAgent, work::list_work)
            .summary("List the caller's assigned jobs; `?wait=` waits for changes")
            .query::<work::WorkQuery>()
            .responds::<work::WorkResponse>(200, "New and lost jobs")
            .error(409)
            .error(410),
        post("/v1/jobs/{id}/progress", AnyAgent, jobs::progress::report_progress)
            .summary("Report progress, as its worker")
            .path_param::<JobRef>()
            .request::<jobs::progress::ProgressBody>(examples::PROGRESS)
            .responds::<jobs::progress::ReportResponse>(200, "The report is recorded"),
        post("/v1/jobs/{id}/parts", AnyAgent, jobs::progress::add_part)
            .summary("Add a part of the result, as its worker")
            .path_param::<JobRef>()
            .request::<jobs::progress::PartBody>(examples::PART)
            .responds::<jobs::progress::ReportResponse>(200, "The part is recorded"),
        post("/v1/jobs/{id}/ask", AnyAgent, jobs::questions::ask_question)
            .summary("Ask the requester for more input, as its worker")
            .path_param::<JobRef>()
            .request::<jobs::questions::AskBody>(examples::QUESTION)
            .responds::<jobs::questions::AskResponse>(200, "The question is recorded"),
        post("/v1/jobs/{id}/answer", AnyAgent, jobs::questions::answer_question)
            .summary("Answer the worker's question, as the requester")
            .path_param::<JobRef>()
            .request::<jobs::questions::AnswerBody>(examples::ANSWER)
            .responds::<JobView>(200, "The job, which goes on"),
        post("/v1/jobs/{id}/result", AnyAgent, jobs::result::submit_result)
            .summary("Report a job's result, as its worker")
            .path_param::<JobRef>()
            .request::<jobs::result::ResultBody>(examples::RESULT)
            .responds::<jobs::result::ResultResponse>(200, "The result is recorded"),
        post("/v1/jobs/{id}/decline", AnyAgent, jobs::result::decline_job)
            .summary("Decline a job, as its worker")
            .path_param::<JobRef>()
            .request::<jobs::result::DeclineBody>(examples::DECLINE)
            .responds::<jobs::result::DeclineResponse>(
                200,
                "The job goes to another worker, or ends",
            ),
        get("/v1/ledger", AnyAgentOrOperator, ledger::list_entries)
            .summary("List ledger entries, newest first")
            .query::<ledger::LedgerQuery>()
            .responds::<Page<ledger::EntryView>>(200, "A page of entries"),
        get("/v1/accounts/{name}", OwnerOrOperator, accounts::show_account)
            .summary("Show available and held credits")
            .path_param::<OwnerRef>()
            .responds::<accounts::AccountView>(200, "The account"),
        get("/v1/inbox", AnyAgent, inbox::list_notices)
            .summary("List notices after a position")
            .query::<inbox::InboxQuery>()
            .responds::<inbox::InboxPage>(200, "A page of notices"),
        get("/v1/inbox/delivery", AnyAgent, delivery_preview::show_delivery)
            .summary("Preview the delivery of a notice")
            .query::<delivery_preview::PreviewQuery>()
            .responds::<delivery_preview::DeliveryPreview>(200, "The delivery"),
        post("/v1/inbox/ack", AnyAgent, inbox::ack_notices)
            .summary("Acknowledge notices up to a position")
            .request::<inbox::AckBody>(examples::ACK)
            .responds::<me::InboxView>(200, "The positions of the inbox"),
        get("/v1/events", AnyAgentOrOperator, events::stream_events)
            .summary("Stream inbox or history, resumable")
            .query::<events::EventQuery>()
            .streams::<events::EventData>(
                "Notices for an agent, lines of the history for the operator",
            )
            .error(409),
        post("/v1/messages", AnyAgent, messages::send_message)
            .summary("Send a message to an agent")
            .request::<messages::MessageBody>(examples::MESSAGE)
            .responds::<messages::SendResponse>(200, "The message is in the receiver's inbox"),
        get("/v1/webhooks", AnyAgent, webhooks::list_webhooks)
            .summary("List the caller's deliveries; `?state=delivered` lists completed ones")
            .query::<webhooks::WebhookQuery>()
            .responds::<Page<webhooks::WebhookView>>(200, "A page of deliveries"),
        post("/v1/webhooks/test", AnyAgent, webhooks::test_call::send_test)
            .summary("Send a test call to the caller's endpoint")
            .responds::<webhooks::test_call::TestResult>(200, "What the endpoint answered"),
        post("/v1/webhooks/secret", AnyAgent, webhooks::secret::renew_secret)
            .summary("New secret; old ones expire in a day")
            .responds::<webhooks::secret::SecretResponse>(200, "The new secret"),
        post("/v1/webhooks/{id}/resend", AnyAgent, webhooks::resend_webhook)
            .summary("Retry a delivery to the caller now")
            .path_param::<DeliveryRef>()
            .responds::<webhooks::WebhookView>(200, "The delivery"),
        post("/v1/keys/rotate", AnyAgent, keys::rotate_key)
            .summary("New key; old ones expire in 10 minutes")
            .responds::<keys::RotateKeyResponse>(200, "The new key"),
        delete("/v1/keys", AnyAgent, keys::revoke_keys)
            .summary("Revoke all keys of the caller")
            .responds::<keys::RevokeKeysResponse>(200, "All keys are revoked"),
        get("/v1/keys", AnyAgent, keys::list_keys)
            .summary("List the caller's keys, with their limits")
            .responds::<keys::KeyList>(200, "The keys, without their secrets"),
        post("/v1/keys", AnyAgent, keys::issue_key)
            .summary("Issue one more key, with limits")
            .request::<keys::LimitedKeyBody>(examples::LIMITED_KEY)
            .responds::<keys::LimitedKeyResponse>(201, "The new key"),
        delete("/v1/keys/{id}", AnyAgent, keys::revoke_key)
            .summary("Revoke one key of the caller")
            .path_param::<KeyRef>()
            .responds::<keys::RevokeKeysResponse>(200, "The key is revoked"),
        post("/v1/operator/grants", Operator, operator::grant_credits)
            .summary("Grant credits to an owner")
            .request::<operator::CreditsBody>(examples::CREDITS)
            .responds::<accounts::AccountView>(201, "The account"),
        post("/v1/operator/burns", Operator, operator::burn_credits)
            .summary("Remove credits from an owner's account")
            .request::<operator::CreditsBody>(examples::CREDITS)
            .responds::<accounts::AccountView>(201, "The account"),
        post("/v1/operator/jobs/{uuid}/cancel", Operator, operator::cancel_job)
            .summary("Cancel a job")
            .path_param::<JobUuid>()
            .responds::<JobView>(200, "The job"),
        post("/v1/operator/jobs/{uuid}/requeue", Operator, operator::requeue_job)
            .summary("Requeue a job")
            .path_param::<JobUuid>()
            .responds::<JobView>(200, "The job"),
        post("/v1/operator/agents/{id}/revoke-keys", Operator, operator::revoke_keys)
            .summary("Revoke an agent's keys")
            .path_param::<AgentRef>()
            .responds::<operator::AgentResponse>(200, "The agent"),
        get("/v1/operator/jobs", Operator, operator::jobs::list_jobs)
            .summary("List all jobs, without their content")
            .query::<operator::jobs::OperatorJobsQuery>()
            .responds::<Page<JobView>>(200, "A page of jobs"),
        get("/v1/operator/agents", Operator, operator::agents::list_agents)
            .summary("List all agents, unregistered ones included")
            .as_is()
            .query::<operator::agents::OperatorAgentsQuery>()
            .responds::<Page<operator::agents::OperatorAgentView>>(200, "A page of agents"),
        post("/v1/operator/agents/{id}/suspend", Operator, operator::agents::suspend_agent)
            .summary("Suspend an agent")
            .path_param::<AgentRef>()
            .responds::<operator::agents::SuspensionResponse>(200, "The agent"),
        post("/v1/operator/agents/{id}/resume", Operator, operator::agents::resume_agent)
            .summary("Resume an agent")
            .path_param::<AgentRef>()
            .responds::<operator::agents::SuspensionResponse>(200, "The agent"),
        post("/v1/operator/owners/{name}/suspend", Operator, operator::agents::suspend_owner)
            .summary("Suspend an owner and all its agents")
            .path_param::<OwnerRef>()
            .responds::<operator::agents::SuspensionResponse>(200, "The owner"),
        post("/v1/operator/owners/{name}/resume", Operator, operator::agents::resume_owner)
            .summary("Resume an owner")
            .path_param::<OwnerRef>()
            .responds::<operator::agents::SuspensionResponse>(200, "The owner"),
        post("/v1/operator/keys", Operator, operator::keys::issue_key)
            .summary("Issue an operator key, optionally retiring the others")
            .request::<operator::keys::KeyBody>(examples::KEY)
            .responds::<operator::keys::IssueKeyResponse>(201, "The new key"),
        delete("/v1/operator/agents/{id}", Operator, operator::remove_agent)
            .summary("Unregister an agent")
            .path_param::<AgentRef>()
            .responds::<operator::AgentResponse>(200, "The agent"),
        get("/v1/operator/pushes", Operator, operator::deliveries::list_deliveries)
            .summary("List deliveries that are waiting or given up")
            .query::<operator::deliveries::DeliveryQuery>()
            .responds::<Page<operator::deliveries::OperatorDeliveryView>>(
                200,
                "A page of deliveries",
            ),
        post("/v1/operator/pushes/{id}/retry", Operator, operator::deliveries::retry_delivery)
            .summary("Retry a delivery now")
            .path_param::<DeliveryRef>()
            .responds::<operator::deliveries::OperatorDeliveryView>(200, "The delivery"),
        get("/v1/operator/stats", Operator, operator::stats::show_stats)
            .summary("Show statistics of the hub")
            .as_is()
            .responds::<operator::stats::Stats>(200, "The statistics"),
        get("/v1/operator/cluster", Operator, operator::cluster::show_cluster)
            .summary("Show the nodes of the hub")
            .as_is()
            .responds::<operator::cluster::ClusterView>(200, "The nodes"),
    ]
}
