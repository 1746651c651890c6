"""What a prompt means to the server, pinned (OpenCode 2.0.15 as measured).

*Durable admission.* A 200 to `POST …/prompt` means that the item is a row of the inbox; a lost
answer may hide one, since the prompt is admitted and runs all the same (facts, section 1).

*Own id.* The client names the prompt: `msg_` and anything, unique over the whole store. The inbox
item and, after delivery, the user row carry that id.

*Queue.* `queue` waits until the running work would stop; `steer`, the server's default, joins the
running work at its next step, where several items get one answer. One execution may serve several
queued prompts: it writes one end event for all of them.

*A duplicate.* The same id on the same session answers 200 with the original item, whatever text
was sent; on another session 409. Unless it carries `resume:false` it also wakes the session, and
a wake with nothing pending writes an empty execution with a bogus success (facts, section 1).
After a DELETE of the undelivered item the id is free again and the same POST is a new prompt.

*Parked.* An item that was admitted with `resume:false`, before an interrupt, or before a restart
of the server stays in the inbox and nothing runs. `PATCH …/inbox/{id}` to `steer` wakes it: 204
woke it, 409 means that it is no longer pending or is `steer` already (later experiments 3, 4).

*The end of a turn.* The `session.step.ended` of its own last step: a finish other than
`tool-calls`; failing that, the end of the execution (lifecycle.md, rule 6). `idle{succeeded}` and
`session.outcome` prove nothing.
"""

from __future__ import annotations

from typing import Final, Literal

Delivery = Literal["steer", "queue"]
QUEUE: Final[Delivery] = "queue"
STEER: Final[Delivery] = "steer"

# Ids that the adapter makes: recognisable in a history that several front ends write.
OWN_MESSAGE_PREFIX: Final = "msg_acp_"
OWN_SESSION_PREFIX: Final = "ses_acp_"

# The answer to a permission request; the body's key is `decision` (facts, section 5).
Decision = Literal["once", "always", "reject"]

# A page of messages holds at most this many rows; more is a 400 (facts, section 7).
MAX_PAGE: Final = 200

# The user name of the server's basic authentication.
USER: Final = "opencode"
