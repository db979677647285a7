"""What plugins of serving engines share: operators for steps over a paged KV cache, of which no engine is needed."""
