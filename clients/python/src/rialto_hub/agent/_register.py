"""Registration at a hub: under the agent's earlier id and key, or as a new agent."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import _flows
from .._async_hub import AsyncHub
from .._errors import AgentError, HubError, RialtoError, Unreadable
from .._keys import KeyFile
from .._retry import RetryPolicy, worker_delay
from .._transport import ANY_JSON, Request
from .._wire import Me, Registration, SkillBody
from ._events import AgentEvent, Reporter
from ._state import StateDir, agent_slug

# How often a hub is looked for that is not reachable yet, in seconds.
_POLL_INTERVAL = 0.5
_OTHER_INSTANCE = "other_instance"
_UNREGISTERED = "unregistered"


@dataclass(frozen=True)
class RegisteredAgent:
    """An agent as the hub has it."""

    agent_id: str
    key: str
    owner: str


@dataclass(frozen=True)
class Registrar:
    """Registers an agent."""

    #: The hub, without a key and without retries.
    hub: AsyncHub
    state: StateDir
    name: str
    #: The owner that is paid, if one is given.
    owner: str | None
    skills: list[SkillBody]
    accepts: Sequence[str]
    instance: str
    reporter: Reporter

    @staticmethod
    def hub_for(url: str) -> AsyncHub:
        """Return the hub as a registrar wants it."""
        # Each call names its own key.
        return AsyncHub(url, key="", retry=RetryPolicy(max_attempts=1))

    async def register(self) -> RegisteredAgent:
        """Register or update the registration, and save the key.

        Waits for a hub that is not reachable yet.
        """
        while True:
            try:
                return self._save(*await self._try_to_register())
            except RialtoError as caught:
                error = caught
            delay = worker_delay(error, 1)
            if delay is None:
                raise agent_error(error)
            is_busy = error.code == _OTHER_INSTANCE
            if is_busy or (isinstance(error, HubError) and error.is_suspended):
                self.reporter.retrying("cannot go online", error)
            else:
                self.reporter.emit(AgentEvent("waiting_for_hub", hub=self.hub.url))
            await asyncio.sleep(max(delay, _POLL_INTERVAL))

    async def _try_to_register(self) -> tuple[Registration, str]:
        keys = await self._own_keys()
        agent_id = keys.agent_id if keys is not None else None
        listed = await self._owner_of(agent_id) if agent_id is not None else None
        owner = self.owner or listed or self.state.saved_owner()
        owner = owner or f"{agent_slug(self.name)}-{secrets.token_hex(4)}"
        if keys is None:
            return await self._send(owner, None, None), owner
        # First of all: to register would change the registration of an agent that runs elsewhere.
        await self._check_instance(keys.key)
        try:
            return await self._send(owner, agent_id, keys.key), owner
        except HubError as error:
            if error.status != 401:
                raise
        registered = await self._try_previous_keys(owner)
        if registered is not None:
            return registered, owner
        # A hub with new data never knew the agent. A key without a known agent could be anyone's.
        if listed is None and agent_id is not None:
            fresh = await self._send(owner, agent_id, None)
            if fresh.api_key is not None:
                return fresh, owner
        raise HubError(
            "the hub knows the agent but refuses its key",
            code="unauthorized",
            status=401,
            hint="restore the key file, or remove the agent's directory to register a new agent",
        )

    async def _own_keys(self) -> KeyFile | None:
        outside = self.state.outside_key
        if outside is None:
            return self.state.load_key()
        agent_id = self.state.saved_id()
        if agent_id is None:
            # An agent that is not registered now cannot ask who it is, so this is kept.
            request = Request("GET", "/v1/me", Me, key=outside)
            me: Me = await self.hub.run_flow(_flows.send(request))
            agent_id = me.agent.names.get("registry")
        return KeyFile(outside, agent_id=agent_id)

    async def _owner_of(self, agent_id: str) -> str | None:
        try:
            entry: dict[str, Any] = await self.hub.run_flow(_flows.registry_agent(agent_id))
        except HubError as error:
            if error.status == 404:
                return None
            raise
        owner = entry.get("owner_id")
        return owner if isinstance(owner, str) else None

    async def _check_instance(self, key: str) -> None:
        """Raise if another program works for the agent. Other errors are found later."""
        path = f"/v1/work?wait=0&limit=0&instance={self.instance}"
        request: Request[Any] = Request("GET", path, ANY_JSON, key=key)
        try:
            await self.hub.run_flow(_flows.send(request))
        except HubError as error:
            if error.status == 409:
                raise

    async def _send(self, owner: str, agent_id: str | None, key: str | None) -> Registration:
        flow = _flows.register(self.name, owner, self.skills, agent_id, None, self.accepts, key)
        registered = await self.hub.run_flow(flow)
        if registered.api_key is None and key is not None:
            registered = replace(registered, api_key=key)
        return registered

    async def _try_previous_keys(self, owner: str) -> Registration | None:
        """Try the replaced keys. They were replaced while another hub was at this address."""
        for keys in self.state.previous_keys():
            try:
                return await self._send(owner, keys.agent_id, keys.key)
            except HubError as error:
                if error.status not in (401, 409):
                    raise
        return None

    def _save(self, registered: Registration, owner: str) -> RegisteredAgent:
        if registered.api_key is None:
            raise Unreadable("api_key is missing")
        before = self.state.load_key()
        if before is None or before.key != registered.api_key:
            before = KeyFile(registered.api_key)
        keys = replace(before, agent_id=registered.agent_id, hub=self.hub.url)
        self.state.save_key(keys)
        self.state.save_id(registered.agent_id)
        self.state.save_owner(owner)
        return RegisteredAgent(registered.agent_id, registered.api_key, owner)


def agent_error(error: RialtoError) -> RialtoError:
    """Return the error that stops an agent."""
    if error.code == _OTHER_INSTANCE and not error.retryable:
        return AgentError(
            "another program uses this agent's key",
            code=_OTHER_INSTANCE,
            hint="stop it, or register another agent",
        )
    if error.code == _UNREGISTERED:
        return AgentError(
            "the agent was unregistered from its hub",
            code=_UNREGISTERED,
            hint="start it again to register it",
        )
    return error
