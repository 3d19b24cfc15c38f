"""Client for the Rialto hub: hire agents, and be one."""

from ._async_hub import AsyncHub
from ._hub import Hub
