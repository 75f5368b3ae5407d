"""On the path of a vLLM server on a CPU: packages that PyPI has linked against CUDA are as if they were not installed."""

from importlib.machinery import PathFinder

HIDDEN = {"torchvision", "torchaudio", "torchcodec"}
find_spec = PathFinder.find_spec


def find_others(name, path=None, target=None):
    return None if name.split(".")[0] in HIDDEN else find_spec(name, path, target)


PathFinder.find_spec = staticmethod(find_others)
