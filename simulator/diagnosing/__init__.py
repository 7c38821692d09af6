"""What is left over on a node, and the commands that mend it.

Pure: a bundle goes in, findings come out. Nothing here executes anything. `finding` has the kinds, `situation` what a
detector may ask about the node, `commands` how a command is spelled; every other module is the detectors of one subject.
"""
