"""Storage in a cloud: a bucket, its key, its policy, and a Secret with their ids."""
