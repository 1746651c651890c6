"""`make run`: one conversation through the adapter, told line by line.

A client starts `opencode-acp` on stdio, as an editor would. The adapter talks to a server on
loopback: the stub, or with REAL=1 in the environment the real OpenCode with a scripted model
(`make tools` installs it). Between the two stands a proxy, so that the event feed can be torn.
Everything shown is checked; the exit code is 1 if anything is not as told.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from stubs.client import AcpClient, AcpClientError
from stubs.client.transcript import Json
from stubs.narrator import Narrator
from stubs.proxy import Proxy
from stubs.stage import Stage, stage

COMMAND: Final = Path(sys.executable).with_name("opencode-acp")
WHOLE_SECONDS: Final = 60.0
CUT_AFTER: Final = 60
CANCEL_AFTER: Final = 40

GREETING: Final = (
    "Hello! I am the model behind the server, and this text reaches you as I write it."
)
LONG: Final = (
    "This answer is long enough to lose its event feed on the way. The server goes on writing "
    "while nobody listens. When the adapter is connected again it reads what the server has "
    "kept, compares it with what you have got so far, and sends you exactly the rest."
)
SHELL: Final = "echo forty-two"
ENDLESS: Final = "Counting the grains of sand: " + "one more, " * 200


class NotAsToldError(AssertionError):
    """The demonstration showed something else than it says."""


def expect(holds: bool, sentence: str) -> None:
    """Raise NotAsToldError with the sentence unless it holds."""
    if not holds:
        raise NotAsToldError(sentence)


def script(*steps: str) -> str:
    """What the model shall answer, as it is written behind a prompt (stubs/script.py)."""
    return f" @@{' || '.join(steps)}@@"


@dataclass
class Scene:
    """One prompt: what was asked, and what has come so far. `on_text` follows each chunk."""

    client: AcpClient
    narrator: Narrator
    session: str
    text: str = ""
    thought: str = ""
    tool_line: str = ""
    on_text: Callable[[], None] = field(default=lambda: None)

    async def prompt(self, words: str, answer: str) -> Json:
        """Send the prompt and tell what comes; the result of session/prompt."""
        self.client.on_message = self._show
        self.narrator.say("you", words)
        result = await self.client.prompt(self.session, words + answer)
        self.narrator.say("end", f"stop reason {result['stopReason']}")
        return result

    def tool(self) -> Json:
        """The last state of the newest tool call."""
        return list(self.client.transcript(self.session).tools.values())[-1]

    def _show(self, message: Json) -> None:
        if message.get("method") != "session/update":
            return
        update = message["params"]["update"]
        match update["sessionUpdate"]:
            case "agent_message_chunk":
                self.text += update["content"]["text"]
                self.narrator.flow("agent", update["content"]["text"])
                self.on_text()
            case "agent_thought_chunk":
                self.thought += update["content"]["text"]
                self.narrator.flow("thought", update["content"]["text"])
            case "tool_call" | "tool_call_update":
                line = f"{update['title']}: {update['status']}"
                if line != self.tool_line:
                    self.narrator.say("tool", line)
                self.tool_line = line


async def text_and_thought(scene: Scene) -> None:
    """Streamed thought and text."""
    scene.narrator.scene("A thought, and text that is streamed")
    answer = script(f"think 8 30 && say {json.dumps(GREETING)} 40")
    result = await scene.prompt("Who are you?", answer)
    expect(scene.text == GREETING, "the text is the text of the model")
    expect(scene.thought.startswith("think0 think1 "), "the thought comes apart from the text")
    expect(result["stopReason"] == "end_turn", "the turn ends with end_turn")


async def permission(scene: Scene) -> None:
    """A tool call that is asked for and allowed."""
    scene.narrator.scene("A tool call that needs a permission")
    asked: list[str] = []

    async def allow(params: Json) -> str | None:
        options = {option["kind"]: option["optionId"] for option in params["options"]}
        title = str(params["toolCall"]["title"])
        asked.append(title)
        scene.narrator.say("asked", f"may the agent run `{title}`?")
        scene.narrator.say("you", "allow once")
        return str(options["allow_once"])

    scene.client.policy = allow
    call = f"tool shell {json.dumps({'command': SHELL})}"
    await scene.prompt("Run a command.", script(call, 'say "The command has run." 40'))
    tool = scene.tool()
    expect(asked == [SHELL], "the permission is asked once, for that command")
    expect(tool["status"] == "completed", "the tool completes once it is allowed")
    expect("forty-two" in json.dumps(tool["content"]), "the client gets what the command printed")
    scene.narrator.note(f"The command printed: {SHELL.removeprefix('echo ')}")


async def torn_feed(scene: Scene, proxy: Proxy) -> None:
    """The feed is torn in mid-text, and no character is missing or repeated."""
    scene.narrator.scene("The event feed is torn in mid-text")
    before = 0

    def tear() -> None:
        nonlocal before
        if not before and len(scene.text) >= CUT_AFTER:
            before = len(scene.text)
            proxy.cut_feed()
            scene.narrator.note(f"[here the feed is torn; {before} characters have come]")

    scene.on_text = tear
    result = await scene.prompt("Tell me something long.", script(f"say {json.dumps(LONG)} 50"))
    told = result["_meta"]["opencode-acp"]
    expect(0 < before < len(LONG), "the feed is torn in the middle of the text")
    expect(scene.text == LONG, "the text is exact")
    expect(told["gaps"] == 1, "the result counts the gap")
    expect(result["stopReason"] == "end_turn", "the turn ends as if nothing had happened")
    scene.narrator.note(
        f"{before} characters came before the tear and {len(LONG) - before} after it: exactly the "
        f"{len(LONG)} of the model, none lost, none repeated. The result says: {told['gaps']} gap, "
        f"{told['recoveredChars']} characters recovered from the server's records."
    )


async def cancel(scene: Scene) -> None:
    """A turn that is cancelled, and the session that is none the worse for it."""
    scene.narrator.scene("A cancel")
    enough = asyncio.Event()

    def look() -> None:
        if len(scene.text) >= CANCEL_AFTER:
            enough.set()

    async def stop() -> float:
        await enough.wait()
        scene.narrator.say("you", "cancel")
        await scene.client.cancel(scene.session)
        return time.monotonic()

    scene.on_text = look
    stopping = asyncio.create_task(stop())
    try:
        result = await scene.prompt("Count the sand.", script(f"say {json.dumps(ENDLESS)} 50"))
        seconds = time.monotonic() - await stopping
    finally:
        stopping.cancel()
    expect(result["stopReason"] == "cancelled", "a cancelled turn ends with cancelled")
    expect(len(scene.text) < len(ENDLESS), "a cancelled turn stops")
    expect(seconds < 2.5, "a cancel is answered within two seconds")
    scene.narrator.note(f"Answered {seconds * 1000:.0f} ms after the cancel. The session lives on:")
    again = Scene(scene.client, scene.narrator, scene.session)
    result = await again.prompt("Still there?", script('say "Yes." 20'))
    expect((again.text, result["stopReason"]) == ("Yes.", "end_turn"), "the next prompt works")


async def conversation(place: Stage, proxy: Proxy, narrator: Narrator) -> None:
    """The client's side of the demonstration, from the start of the adapter to its exit."""
    env = {**os.environ, "OPENCODE_SERVER_PASSWORD": place.password}
    env.pop("OPENCODE_ACP_PASSWORD_FILE", None)
    began = time.monotonic()
    async with AcpClient.spawn([str(COMMAND), "--server", proxy.url], env=env) as client:
        hello = await client.initialize()
        agent = hello["agentInfo"]
        took = (time.monotonic() - began) * 1000
        narrator.note(f"{agent['name']} {agent['version']} answers initialize after {took:.0f} ms.")
        session = await client.new_session(place.project)
        options = client.sessions[session]["configOptions"]
        chosen = ", ".join(f"{option['id']} {option['currentValue']}" for option in options)
        narrator.note(f"The session is open: {chosen}.")

        def scene() -> Scene:
            return Scene(client, narrator, session)

        await text_and_thought(scene())
        await permission(scene())
        await torn_feed(scene(), proxy)
        await cancel(scene())
        code = await client.hang_up()
        expect(code == 0, "the adapter leaves with exit code 0 when the client does")
        expect(client.violations == [], f"the protocol is kept: {client.violations}")


async def demonstrate(*, real: bool) -> None:
    """The whole demonstration. Raises NotAsToldError, and what a start can raise."""
    began = time.monotonic()
    narrator = Narrator()
    with tempfile.TemporaryDirectory(prefix="opencode-acp-") as folder:
        async with (
            asyncio.timeout(WHOLE_SECONDS),
            stage(Path(folder), real=real) as place,
            Proxy(place.url) as proxy,
        ):
            narrator.note(f"A client starts opencode-acp, which uses {place.name}.")
            narrator.note("The answers of the model are scripted, so that they can be checked.")
            await conversation(place, proxy, narrator)
    narrator.end(f"All as told, in {time.monotonic() - began:.0f} s.")


def main() -> int:
    """Run it; the exit code."""
    real = os.environ.get("REAL", "") not in ("", "0")
    try:
        asyncio.run(demonstrate(real=real))
    except NotAsToldError as error:
        print(f"\nNot as told: {error}.", file=sys.stderr)
        return 1
    except (AcpClientError, OSError, RuntimeError) as error:
        print(f"\nThe demonstration broke off: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
