"""Prints a conversation plainly: who says what, with text that flows as it comes."""

from __future__ import annotations

from typing import Final

LABEL: Final = 9
WIDTH: Final = 88


class Narrator:
    """Writes to stdout. A line belongs to one speaker; long ones are broken at a space."""

    def __init__(self) -> None:
        self._speaker = ""
        self._column = 0
        self._scenes = 0

    def scene(self, title: str) -> None:
        """The heading of the next scene."""
        self._scenes += 1
        self._close()
        print(f"\n{self._scenes}. {title}", flush=True)

    def say(self, speaker: str, text: str) -> None:
        """A whole line of one speaker."""
        self._close()
        self.flow(speaker, text)
        self._close()

    def note(self, text: str) -> None:
        """A line of nobody's: what happens, and what follows from it."""
        self.say("", text)

    def flow(self, speaker: str, text: str) -> None:
        """A piece of what a speaker is saying; it goes on in the line where it left off."""
        if self._column == 0 or speaker != self._speaker:
            self._close()
            print(f"   {speaker:<{LABEL}}", end="")
            self._speaker, self._column = speaker, LABEL
        for character in text:
            if character == " " and self._column >= WIDTH - LABEL:
                print(f"\n   {'':<{LABEL}}", end="")
                self._column = LABEL
            else:
                print(character, end="")
                self._column += 1
        print(end="", flush=True)

    def end(self, text: str) -> None:
        """The last line."""
        self._close()
        print(f"\n{text}", flush=True)

    def _close(self) -> None:
        if self._column:
            print()
        self._column = 0
