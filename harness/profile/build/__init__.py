"""What a profile stands for: workload, pacer, conditions, plan."""
