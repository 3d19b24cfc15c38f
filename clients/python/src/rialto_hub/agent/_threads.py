"""Threads for plain handlers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread that does not keep the process alive."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    result: asyncio.Future[T] = loop.create_future()

    def finish(value: T | None, error: BaseException | None) -> None:
        if result.cancelled():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except Exception as caught:
            # A future does not take StopIteration.
            is_plain = not isinstance(caught, StopIteration)
            error = caught if is_plain else RuntimeError("the handler raised StopIteration")
        except BaseException as caught:
            error = RuntimeError(f"the handler raised {type(caught).__name__}")
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, value, error)

    threading.Thread(target=work, name="rialto-job", daemon=True).start()
    return await result
