"""Context: what a model is shown. Prompts, reminders, a list of messages that is always valid, and compaction.

Rooms: composer, sections and core_prompt (system prompt), environment (its dynamic end), picker (every request from six
sources), mentions (`@file`), repomap and outline (map of the repository), reminders, detectors (failure classes, calls written
as text), cautions (goals unfit to be worked on unseen), messages (the validated list), pressure (tokens and stages due), compaction, summaries, artifacts (files touched).
Memory: view (which results are shown), thinking_input (port of the thinking stage), episodic (what fills it), playbook and
playbook_file (lessons of a project).
"""
