"""The simulated disk, processes and schedules, and the injected exceptions."""
