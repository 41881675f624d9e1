"""Finding the place an edit means (Catalogue E), and writing nothing else.

Rooms: canonical, chain, diff, document, elided, indent, nearest, passes, splice.
"""
