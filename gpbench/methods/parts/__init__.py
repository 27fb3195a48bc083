"""Parts of methods: what several share (`gradient`, `variational`, `sparse_layer`, `collapsed`), and the layers of deep
GPs (`deep_*`) and of additive models (`components`, `additive_layer`, `effects`).
"""
