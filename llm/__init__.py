"""Models: one service's parts. Rooms: litellm_client (the door), convert, assembly, failures, retry, roles, catalog, cost, budget, recipes, replay."""
