"""Tests of adapter/doctor."""
