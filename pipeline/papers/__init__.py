"""The papers' figures from the pipeline's own results, each beside what the paper claims; one module a figure.

DeepRM is Mao et al. (HotNets 2016); DeepRM2 and DeepRM_Off are Ye et al. Where our protocol is another one (recipe,
loads trained on, validation jobsets) the finding says so.
"""
