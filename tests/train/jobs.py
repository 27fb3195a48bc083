"""Words of jobs and comparisons of their records, which tests of jobs share."""

import numpy as np

WALK = ["dataset=moons", "method=walk", "method.batch_size=64", "run.together=true"]


def close(records, others) -> bool:
    return all(
        r.id == o.id
        and np.isclose(r.objective, o.objective, rtol=1e-6)
        and np.allclose(list(r.metrics.values()), list(o.metrics.values()), rtol=1e-6)
        and np.allclose(list(r.row_stderr.values()), list(o.row_stderr.values()), rtol=1e-6)
        for r, o in zip(records, others, strict=True)
    )
