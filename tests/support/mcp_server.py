"""`python tests/support/mcp_server.py MODE [LOG]`: a small MCP server, on its standard input.

MODE is `ok`, `exit` (ends at once), `hang` (never answers), `refuse` (answers everything with an
error that quotes its arguments and its environment), or `http PORT_FILE` (serves streamable
HTTP on a free port instead and writes the port there; it wants the header `X-Key: open`). With
LOG, a line with its process id is added at the start. Its tools: `echo` gives back its arguments,
`picture` an image, `env` the variable that it is asked for, `ask` what the user answered.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": {"t": {"type": "string"}}}
TOOLS = [
    {"name": name, "description": name, "inputSchema": SCHEMA}
    for name in ("echo", "picture", "env", "ask")
]


def content(name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The result of a tool."""
    if name == "picture":
        return [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]
    if name == "env":
        return [{"type": "text", "text": repr(os.environ.get(given["t"]))}]
    return [{"type": "text", "text": json.dumps(given)}]


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """What is said to a message; nothing to a notification."""
    if message.get("id") is None:
        return None
    params = message.get("params", {})
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": params.get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        },
        "tools/list": {"tools": TOOLS},
        "ping": {},
    }
    head = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "tools/call":
        return {**head, "result": {"content": content(params["name"], params["arguments"])}}
    if method in results:
        return {**head, "result": results[method]}
    return {**head, "error": {"code": -32601, "message": "unknown"}}


def asked(message: dict[str, Any]) -> dict[str, Any]:
    """The result of the tool `ask`, once the user has answered."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "size": {"type": "string", "enum": ["S", "M"]},
        },
        "required": ["name"],
    }
    params = {"mode": "form", "message": "Tell me", "requestedSchema": schema}
    say({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": params})
    for line in sys.stdin:
        said = json.loads(line)
        if said.get("id") == "ask":
            break
    text = json.dumps(said.get("result"), sort_keys=True)
    content = [{"type": "text", "text": text}]
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    """One message in, one answer out."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("X-Key") != "open":
            self._reply(403, b"")
            return
        said = answer(json.loads(body))
        self._reply(
            202 if said is None else 200, b"" if said is None else json.dumps(said).encode()
        )

    def do_GET(self) -> None:
        self._reply(405, b"")

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def main() -> None:
    mode, *more = sys.argv[1:]
    if mode == "http":
        server = HTTPServer(("127.0.0.1", 0), Handler)
        Path(more[0]).write_text(str(server.server_port))
        server.serve_forever()
    if more:
        with Path(more[0]).open("a") as log:
            log.write(f"{os.getpid()}\n")
    if mode == "exit":
        sys.exit(3)
    while mode == "hang":
        time.sleep(60)
    for line in sys.stdin:
        message = json.loads(line)
        if mode == "refuse":
            told = f"{sys.argv} {dict(os.environ)}"
            error = {"code": -32000, "message": told}
            say({"jsonrpc": "2.0", "id": message.get("id"), "error": error})
            continue
        asks = message.get("params", {}).get("name") == "ask"
        said = asked(message) if asks else answer(message)
        if said is not None:
            say(said)


if __name__ == "__main__":
    main()
