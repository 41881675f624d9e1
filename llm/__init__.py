"""Models: one service's parts.

Rooms: litellm_client (the door), openai_direct (servers that speak OpenAI's dialect), convert, assembly, failures, retry, roles, catalog, provider_cache, cost, budget, prefix (warms prompt caches), recipes, replay.
"""
