"""Inference on one system: a façade that chooses an engine, and the engines behind it."""

from unround.infer.answer import Inference
from unround.infer.facade import ENGINES, infer

__all__ = ["ENGINES", "Inference", "infer"]
