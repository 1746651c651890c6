"""The MCP servers of a location at the OpenCode server."""

from __future__ import annotations

from collections.abc import Mapping

from adapter.upstream.shaped import data, objects, shaped
from adapter.upstream.transport import Retry, Transport
from contract import routes
from contract.mcp import ListedServer, McpStatus


class McpServers:
    """Typed calls; each raises the errors of `adapter.upstream.errors`.

    The server works off the changes of one location one after another (OpenCode facts B, 5).
    """

    def __init__(self, http: Transport) -> None:
        self._http = http

    async def put(
        self, directory: str, name: str, config: Mapping[str, object], deadline: float
    ) -> None:
        """Add or replace one. A server that did not start is no error here: `statuses` says it.

        Sent once: each time starts the program anew.
        """
        await self._http.call(
            routes.MCP_PUT,
            {"server": name},
            query=_location(directory),
            body={"config": dict(config)},
            retry=Retry.UNSENT,
            deadline=deadline,
        )

    async def statuses(self, directory: str, deadline: float) -> dict[str, McpStatus]:
        """What became of each server of the location, by name."""
        answer = await self._http.call(
            routes.MCP_LIST, query=_location(directory), deadline=deadline
        )
        listed = [shaped(ListedServer, raw) for raw in objects(data(answer))]
        return {one.name: one.status for one in listed}

    async def remove(self, directory: str, name: str, deadline: float) -> None:
        """Also for one that is gone already."""
        await self._http.call(
            routes.MCP_REMOVE,
            {"server": name},
            query=_location(directory),
            deadline=deadline,
            accept=(404,),
        )


def _location(directory: str) -> dict[str, str]:
    return {"location[directory]": directory}
