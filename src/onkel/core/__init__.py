"""The lowest layer: parts, stored rows, linear algebra, random numbers, locks, errors, files."""
