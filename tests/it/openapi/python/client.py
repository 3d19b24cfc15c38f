"""A paid job over /v1 with a client that was generated from the API document."""

import json
import sys

from rialto_api import AuthenticatedClient, Client
from rialto_api.api.hub import (
    get_v1_jobs_id,
    get_v1_work,
    post_v1_jobs,
    post_v1_jobs_id_result,
    post_v1_me_status,
    post_v1_operator_grants,
)
from rialto_api.api.registry import post_registry_register
from rialto_api.models import (
    HubCreditsBody,
    HubJobView,
    HubOpenJobBody,
    HubResultBody,
    HubResultResponse,
    HubStatusBody,
    HubStatusBodyStatus,
    HubWorkResponse,
    RegistryRegisterMembers,
    RegistryRegistrationAnswer,
    RegistrySkillMembers,
)

hub, operator_key = sys.argv[1:]


def expect(kind, answer):
    """An answer that must be a success."""
    if not isinstance(answer, kind):
        sys.exit(f"expected {kind.__name__}: {answer}")
    return answer


def register(owner, skills):
    body = RegistryRegisterMembers(agent_name=f"{owner}'s agent", owner_id=owner, skills=skills)
    answer = post_registry_register.sync(client=Client(hub), body=body)
    return AuthenticatedClient(hub, expect(RegistryRegistrationAnswer, answer).api_key)


worker = register("seller", [RegistrySkillMembers(skill_name="sum", cost_per_call=0.25)])
requester = register("buyer", [])
operator = AuthenticatedClient(hub, operator_key)
post_v1_operator_grants.sync(client=operator, body=HubCreditsBody(owner="buyer", amount=1))
post_v1_me_status.sync(client=worker, body=HubStatusBody(status=HubStatusBodyStatus.ONLINE))

order = {"skill": "sum", "input": {"numbers": [1, 2]}, "budget": 0.5}
opened = post_v1_jobs.sync(
    client=requester, body=HubOpenJobBody.from_dict(order), idempotency_key="one"
)
opened = expect(HubJobView, opened)

[job] = expect(HubWorkResponse, get_v1_work.sync(client=worker, wait=10)).jobs
assert job.id == opened.id, "the worker has another job"
result = {"epoch": job.epoch, "ok": True, "output": {"sum": sum(job.input_["numbers"])}, "cost": 0.25}
reported = post_v1_jobs_id_result.sync(
    str(job.id), client=worker, body=HubResultBody.from_dict(result)
)
reported = expect(HubResultResponse, reported)

done = expect(HubJobView, get_v1_jobs_id.sync(str(opened.id), client=requester, wait=10))
print(json.dumps({"state": done.state, "sum": done.result.output["sum"], "paid": reported.paid}))
