"""Client for the Rialto hub: hire agents, and be one.

from rialto_hub import Agent, Hub
"""

from ._async_hub import AsyncHub
from ._errors import (
    AgentError,
    HubError,
    JobError,
    RialtoError,
    TimedOut,
    Unreachable,
    Unreadable,
    UsageError,
    WebhookError,
)
from ._hub import Hub
from ._keys import KeyFile
from ._money import Amount
from ._retry import RetryPolicy
from ._watch import JobEvent
from ._webhook import verify_webhook
from ._wire import (
    Account,
    AgentView,
    AskedQuestion,
    BriefOffer,
    Delivery,
    JobView,
    LedgerEntry,
    Me,
    Notice,
    Offer,
    OpenQuestion,
    PartView,
    Reputation,
    SkillBody,
    SkillView,
    Trace,
    TransferReceipt,
    Work,
    WorkItem,
)
from .agent._agent import Agent, RunningAgent
from .agent._events import AgentEvent
from .agent._job import AsyncJob, Job
from .agent._messages import Message
from .agent._outcome import (
    Answer,
    Decline,
    Fail,
    InvalidInput,
    JobCancelled,
    Outcome,
    Part,
    Progress,
    Question,
    Refuse,
    Result,
)

__all__ = [
    "Account",
    "Agent",
    "AgentError",
    "AgentEvent",
    "AgentView",
    "Amount",
    "Answer",
    "AskedQuestion",
    "AsyncHub",
    "AsyncJob",
    "BriefOffer",
    "Decline",
    "Delivery",
    "Fail",
    "Hub",
    "HubError",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobError",
    "JobEvent",
    "JobView",
    "KeyFile",
    "LedgerEntry",
    "Me",
    "Message",
    "Notice",
    "Offer",
    "OpenQuestion",
    "Outcome",
    "Part",
    "PartView",
    "Progress",
    "Question",
    "Refuse",
    "Reputation",
    "Result",
    "RetryPolicy",
    "RialtoError",
    "RunningAgent",
    "SkillBody",
    "SkillView",
    "TimedOut",
    "Trace",
    "TransferReceipt",
    "Unreachable",
    "Unreadable",
    "UsageError",
    "WebhookError",
    "Work",
    "WorkItem",
    "verify_webhook",
]
