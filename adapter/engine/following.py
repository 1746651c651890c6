"""The sessions whose events are heard: those that are open, and their descendants, by the root."""

from __future__ import annotations

from adapter.upstream.watch import Watch


class Following:
    """Each followed session, root or descendant, to its root; no more than `watch` takes."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._roots: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._roots)

    def root_of(self, session_id: str | None) -> str | None:
        """None for a session that is not followed."""
        return self._roots.get(session_id) if session_id is not None else None

    def open(self, session_id: str) -> bool:
        """Follow a session as a root of its own; False if there is no room."""
        if not self._watch.add(session_id):
            return False
        self._roots[session_id] = session_id
        return True

    def add(self, session_id: str, root: str) -> None:
        """Follow a descendant; one that is followed already, maybe as a root, stays as it is."""
        if session_id not in self._roots and self._watch.add(session_id):
            self._roots[session_id] = root

    def discard(self, session_id: str, root: str) -> None:
        """The descendant is not followed for this root any more."""
        if session_id != root and self._roots.get(session_id) == root:
            del self._roots[session_id]
            self._watch.discard(session_id)

    def close(self, root: str) -> None:
        """Nothing is followed for this root any more."""
        for session_id in [key for key, above in self._roots.items() if above == root]:
            del self._roots[session_id]
            self._watch.discard(session_id)
