"""Crashes on purpose: a simulated disk, its legal crash states, and an oracle that knows no engine.

The real engine runs on `disk.SimulatedDisk`, which records every operation. `epochs` cuts the
record at the syncs, `states` enumerates what a power loss may leave behind, and `oracle` compares
what recovery makes of each image with `model`, which hashes for itself. `readings` spares what
differs in nothing that recovery reads. `monitor` watches the order of writes and syncs without any
crash; `schedule` runs several simulated processes under every interleaving with few preemptions,
`interleavings` says which processes meet. `documents` crashes a whole store, `crash_test` any
`workload` of a user's own, on all cores. `promises` checks what no crash state shows. `plants`
breaks the engine on purpose, and `detectors` shows that all this would notice. `report` runs the
lot and counts.

`sweep` goes over places one by one: `system_calls` makes each call below the storage fail under
the stories of `sweep_stories`, `exceptions` raises at each bytecode, and `subject` judges what was
said; `kills` and `rounds` do it with real processes, `decoders` reads files that lie.

What your own tests call is in `testing`. Start reading at `disk`.
"""
