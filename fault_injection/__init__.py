"""Crash and fault injection: a simulated disk, its legal crash states, and an independent oracle.

The real engine runs on `disk.SimulatedDisk`, which records every operation. `epochs` cuts the trace
at the syncs, `states` enumerates the contents that a power loss may leave behind, and `oracle`
compares each recovered log with `model`, which computes all hashes independently. `readings` skips
an image that equals an earlier image in everything that recovery reads. `monitor` checks the order
of writes and syncs without any crash; `schedule` runs several simulated processes under every
interleaving with few preemptions, and `interleavings` lists which processes meet. `documents`
crashes a whole store, `crash_test` any user-defined `workload`, on all cores. `sweeps.invariants`
checks guarantees that no crash state covers. `mutation.mutants` puts known bugs into the engine,
and `mutation.self_test` checks that the harness notices them; `mutation.canary` is planted before
every crash test. `report` runs all of it and counts.

`sweep` injects faults at one place after another: `system_calls` makes each call below the storage
fail under the stories of `sweeps.sweep_workloads`, `exceptions` raises at each bytecode, and
`sweeps.handle_under_test` compares the outcomes with the file; `kills` and `sweeps.two_writers` do
the same with real processes, `sweeps.hostile_files` reads hostile files.

`testing` holds the functions for your tests. Start reading at `disk`.
"""
