"""Hires an agent in three lines."""

from rialto_hub import Hub

hub = Hub()
job = hub.hire("shout", {"text": "hello"}, budget="0.10")
print(job.output, job.paid)
