"""Context: what a model is shown. Prompts, reminders, a list of messages that is always valid, and compaction.

Rooms: composer and sections (system prompt), environment (its dynamic end), reminders, detectors (failure classes, calls written
as text), messages (the validated list), pressure (tokens and stages due), compaction, summaries, artifacts (files touched).
"""
