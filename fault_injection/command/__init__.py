"""The verb of crash tests on the command line.

Purpose: the data of the verb, and the function that runs. Read first: `verbs`.
"""
