"""Parts of methods: base classes and settings that several share, and the layers of deep GPs and of additive models."""
