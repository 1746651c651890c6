"""session/set_mode and session/set_config_option."""

from __future__ import annotations

from adapter.acp.transport import Call
from adapter.engine.choices import Change, SetAgent, SetModel
from adapter.engine.hub import Hub
from adapter.engine.methods.desk import Desk, Json
from contract import acp


class Choosing:
    """One set at a time for a session. A set that is the current choice sends nothing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def set_mode(self, call: Call) -> Json:
        params = acp.read_params(acp.SetMode, call.params)
        one = self._desk.sessions.of(params.session_id)
        async with one.hub.choices.lock:
            choices = await one.hub.choices.read()
            await self._apply(one.hub, choices.change_mode(params.mode_id))
            one.hub.choices.told_mode(one.owner, params.mode_id)
        return {}

    async def set_config_option(self, call: Call) -> Json:
        params = acp.read_params(acp.SetConfigOption, call.params)
        one = self._desk.sessions.of(params.session_id)
        async with one.hub.choices.lock:
            choices = await one.hub.choices.read()
            await self._apply(one.hub, choices.change(params.config_id, params.value))
            options = one.hub.choices.told_options(one.owner, await one.hub.choices.read())
            return {"configOptions": options}

    async def _apply(self, hub: Hub, change: Change) -> None:
        server = self._desk.engine.server
        match change:
            case SetAgent(agent):
                await server.set_agent(hub.session_id, agent)
                hub.choices.chose_agent(agent)
            case SetModel(model):
                await server.set_model(hub.session_id, model.provider_id, model.id, model.variant)
                hub.choices.chose_model(model)
            case None:
                pass
