"""The scenarios, one file each: what is done to the cluster, and what has to hold."""
