"""Agents: skills with handlers, working for a hub."""
