"""Storage in a cloud: a bucket, its key, its policy, and where they are."""
