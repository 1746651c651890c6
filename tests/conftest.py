"""What holds for every test of the suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How fast a machine makes examples says nothing about the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
