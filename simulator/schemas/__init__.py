"""JSON Schemas of the files that people write and of what `-o json` prints, for editors and for other programs.

A schema is made of the tables that the readers use (keys, choices, patterns), and a test spoils every fixture at every
place: reader and schema refuse the same, but for what `catalogue` lists as beyond a schema. Draft 7, which editors know best.
"""
