"""Finding the place an edit means (Catalogue E), and writing nothing else.

Rooms: canonical, chain, diff, document, indent, nearest, passes, splice.
"""
