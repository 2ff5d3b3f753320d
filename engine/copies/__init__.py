"""Other files made from a log: backups, forks, compacted files and salvaged events.

Read `backup` first.
"""
