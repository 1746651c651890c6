"""The scenarios of the agent's own process: what is not run through relay and daemon, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IN_PROCESS: Final[Mapping[tuple[str, str], str]] = {
    (
        "test_counts.py",
        "test_the_counts_are_told_at_the_exit",
    ): "one process tells what it counted when it ends; a daemon has metrics",
    (
        "test_limits.py",
        "test_a_file_that_raises_a_limit_ends_the_start",
    ): "a relay reads no file; a daemon that cannot start has tests of its own",
    (
        "test_lost_requests.py",
        "test_a_signal_stops_the_turn_as_a_client_that_leaves_does",
    ): "the signal is the agent's; a relay ends by it at once and is a client that leaves",
    (
        "test_lost_requests.py",
        "test_a_post_on_its_way_at_the_end_is_withdrawn_although_a_signal_follows",
    ): "the signal is the agent's; a daemon has all the time for what a client leaves",
    (
        "test_sessions.py",
        "test_resume_after_the_agent_was_killed_in_mid_turn",
    ): "an agent that is killed stops no turn; a relay that is killed is a client that leaves",
    (
        "test_sessions.py",
        "test_a_wrong_password_is_an_authentication_error",
    ): "a daemon whose password is refused ends at its start with 3",
    (
        "test_start.py",
        "test_a_server_without_a_route_is_refused_by_its_name",
    ): "a daemon whose server lacks a route ends at its start with 4",
    (
        "test_start.py",
        "test_a_start_that_cannot_work_is_one_sentence",
    ): "the flags are the agent's; those of relay and daemon have tests of their own",
    (
        "test_start.py",
        "test_a_crash_leaves_stdout_to_acp",
    ): "a relay imports nothing that could break so",
}
"""File and test to the reason."""
