"""Crash and fault injection: a simulated disk, its legal crash states, and an independent oracle.

The real engine runs on `simulation.disk.SimulatedDisk`, which records every operation.
`crash_states.epochs` cuts the trace at the syncs, `crash_states.states` enumerates the contents
that a power loss may leave behind, and `judging.oracle` compares each recovered log with
`judging.model`, which computes all hashes independently. `crash_states.readings` skips an image
that equals an earlier image in everything that recovery reads. `simulation.write_order_monitor`
checks the order of writes and syncs without any crash; `simulation.schedule` runs several simulated
processes under every interleaving with few preemptions, and `stories.interleavings` lists which
processes meet. `stories.documents` crashes a whole store, `crash_test` any user-defined workload
(`stories.workload`), on all cores. `sweeps.invariants` checks guarantees that no crash state
covers. `mutation.mutants` puts known bugs into the engine, and `mutation.self_test` checks that the
harness notices them; `mutation.canary` is planted before every crash test. `report` runs all of it
and counts.

`sweeps` injects faults at one place after another: `simulation.system_calls` makes each call below
the storage fail under the stories of `sweeps.sweep_workloads`, `sweeps.exception_sweep` raises at
each bytecode, and `sweeps.handle_under_test` compares the outcomes with the file; `sweeps.kills`
and `sweeps.two_writers` do the same with real processes, `sweeps.hostile_files` reads hostile
files.

`testing` holds the functions for your tests. Start reading at `simulation.disk`.
"""
