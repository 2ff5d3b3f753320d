"""Crash and fault injection: a simulated disk, its legal crash states, and an independent oracle.

The real engine runs on `simulation.disk.SimulatedDisk`, which records every operation.
`crash_states.epochs` cuts the trace at the syncs, `crash_states.states` enumerates the contents
that a power loss may leave behind, and `judging.oracle` compares each recovered log with
`judging.model`, which computes all hashes independently. `crash_states.readings` skips an image
that equals an earlier image in everything that recovery reads. `simulation.write_order_monitor`
checks the order of writes and syncs without any crash. `crash_test` crashes any
user-defined workload (`stories.workload`) on all cores; `mutation.canary` plants a known bug before
every crash test, which must be noticed.

`testing` holds the functions for your tests. Start reading at `simulation.disk`. The runs that test
Cerata are in `tests/crash` of a checkout: planted bugs, sweeps of faults, processes that meet, and
the crash gate.
"""
