"""The papers: their published numbers (`published`) and references to cite (`references`)."""

__all__ = ["PAPERS"]

PAPERS = {
    "sep": "D. Hernández-Lobato and J. M. Hernández-Lobato, Scalable Gaussian Process Classification via Expectation"
    " Propagation, AISTATS 2016",
    "svdgp": "Cheng and Boots, Variational Inference for Gaussian Process Models with Linear Complexity, NIPS 2017",
    "aep_dgp": "Bui, D. Hernández-Lobato, Li, J. M. Hernández-Lobato and Turner, Deep Gaussian Processes for Regression"
    " using Approximate Expectation Propagation, ICML 2016",
    "gam": "Adam, Durrande and John, Scalable GAM using Sparse Variational Gaussian Processes, AABI 2018",
    "qsgp": "Evans and Nair, Quadruply Stochastic Gaussian Processes, 2020",
}
"""Citations of the five papers, by their names in experiments and published numbers."""
