"""The papers' figures from the pipeline's own results, each with the paper's claims; one module per kind of figure.

DeepRM is Mao et al. (HotNets 2016); DeepRM2 and DeepRM_Off are Ye et al. Findings state where our protocol differs
(recipe, training loads, validation jobsets).
"""
