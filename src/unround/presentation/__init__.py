"""Faces for people: the terminal, and charts."""
