"""Reads files into nodes with places: YAML, variables, dotenv files, words, typed values and merging."""
