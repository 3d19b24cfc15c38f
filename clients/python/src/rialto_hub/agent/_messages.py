"""Messages to an agent, and the function that handles them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._wire import Notice
from ._events import log
from ._threads import in_thread


@dataclass(frozen=True)
class Message:
    """A message that another agent sent."""

    #: Its position in the inbox, which is the same if it is handed over again after a crash.
    position: int
    #: The number of the sender, if it is an agent of the hub.
    sender: int | None
    #: The message: any JSON.
    body: Any
    at: datetime


class MessageHandler:
    """Calls a function for each message, in order; async ones are awaited."""

    def __init__(self, function: Callable[[Message], Any]) -> None:
        self._function = function

    async def handle(self, notice: Notice) -> bool:
        """Hand over a message; ``False`` if its handler failed, so that it stays in the inbox."""
        message = Message(notice.position, notice.from_, notice.body, notice.at)
        try:
            if inspect.iscoroutinefunction(self._function):
                await self._function(message)
            else:
                result = await in_thread(lambda: self._function(message))
                if inspect.isawaitable(result):
                    await result
        except Exception:
            log.exception("the handler of message %s failed", notice.position)
            return False
        return True
