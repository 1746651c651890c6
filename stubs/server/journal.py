"""Events: their envelope, their durable numbers, and the rows that some of them project."""

from __future__ import annotations

from collections.abc import Callable

from stubs.server.store import Delivery, Item, Session, Store
from stubs.server.wire import Ids, Json, now_ms


class Journal:
    """Writes events and hands each to `publish`.

    A durable event has a number of its session (`version` 1 or 2), a plain one has none and is
    lost to whoever misses it. The keys and their order are those of the recordings.
    """

    def __init__(self, ids: Ids, store: Store, publish: Callable[[Json], None]) -> None:
        self._ids = ids
        self._store = store
        self._publish = publish

    def durable(
        self,
        session: Session,
        kind: str,
        data: Json | None = None,
        *,
        version: int = 1,
        located: bool = True,
        metadata: Json | None = None,
    ) -> Json:
        """An event that takes the session's next number; `data` gets the session id."""
        session.seq += 1
        durable = {"aggregateID": session.id, "seq": session.seq, "version": version}
        directory = session.directory if located else None
        return self._emit(kind, {"sessionID": session.id, **(data or {})}, directory,
                          durable=durable, metadata=metadata)  # fmt: skip

    def passing(
        self, session: Session, kind: str, data: Json | None = None, *, located: bool = True
    ) -> Json:
        """An event of a session without a number."""
        directory = session.directory if located else None
        return self._emit(kind, {"sessionID": session.id, **(data or {})}, directory)

    def plain(self, kind: str, data: Json, directory: str | None) -> Json:
        """An event whose data names no session at its top."""
        return self._emit(kind, data, directory)

    def hidden(self, session: Session) -> None:
        """Take a number that is never broadcast, as title generation and compaction do."""
        session.seq += 1

    def usage(self, session: Session, cost: float, tokens: Json) -> None:
        """Count a model response and say the session's totals."""
        session.add_usage(cost, tokens)
        self.passing(session, "session.usage.updated", session.usage(), located=False)

    def enqueue(self, session: Session, item: Item) -> None:
        """Admit an item: from here on it survives everything but its cancellation."""
        session.inbox[item.id] = item
        session.updated = now_ms()
        if item.kind in ("user", "compaction"):
            self._store.owners[item.id] = session.id
        body = {"type": item.kind, "payload": item.payload, "delivery": item.delivery}
        self.durable(session, "session.inbox.enqueued", {"inboxID": item.id, "item": body})

    def deliver(self, session: Session, item: Item) -> None:
        """Move an item out of the inbox; a user or synthetic one becomes a row with its id."""
        del session.inbox[item.id]
        event = self.durable(session, "session.inbox.delivered", {"inboxID": item.id})
        item.created = int(event["created"])
        if item.kind != "compaction":
            row = {"id": item.id, "time": {"created": item.created}, **item.payload}
            session.rows.append({**row, "type": item.kind})

    def cancel(self, session: Session, item_id: str) -> bool:
        """Withdraw an undelivered item. False when it is not there, and then there is no event."""
        item = session.inbox.pop(item_id, None)
        if item is None:
            return False
        self._store.owners.pop(item_id, None)
        self.durable(session, "session.inbox.cancelled", {"inboxID": item_id}, located=False)
        return True

    def redeliver(self, session: Session, item: Item, delivery: Delivery) -> None:
        """Change how a pending item is delivered."""
        item.delivery = delivery
        data = {"inboxID": item.id, "delivery": delivery}
        self.durable(session, "session.inbox.delivery.changed", data, located=False)

    def end(self, session: Session, outcome: str, data: Json, *, idle: bool) -> None:
        """The end of an execution. Its idle row, if any, has the event's id with prefix msg."""
        event = self.durable(session, f"session.execution.{outcome}", data, located=False)
        if idle:
            created = int(event["created"])
            row_id = as_message(event)
            row = {"id": row_id, "time": {"created": created}, "type": "idle", "outcome": outcome}
            session.rows.append(row)
            session.outcome = outcome
            session.idle = created

    def note_row(self, session: Session, event: Json, body: Json) -> None:
        """Append the row that an event projects to, under the event's id."""
        row = {"id": as_message(event), "time": {"created": event["created"]}, **body}
        session.rows.append(row)

    def _emit(
        self,
        kind: str,
        data: Json,
        directory: str | None,
        *,
        durable: Json | None = None,
        metadata: Json | None = None,
    ) -> Json:
        event: Json = {"id": self._ids.make("evt"), "created": now_ms()}
        if metadata is not None:
            event["metadata"] = metadata
        event["type"] = kind
        if directory is not None:
            event["location"] = {"directory": directory}
        event["data"] = data
        if durable is not None:
            event["durable"] = durable
        self._publish(event)
        return event


def as_message(event: Json) -> str:
    """The message id that belongs to an event."""
    return "msg_" + str(event["id"])[4:]
