"""Any transformers model: open it, and capture what the attention of one of its layers sees."""

from posviz.models.huggingface.capture import HFCapture
from posviz.models.huggingface.loading import open_model
from posviz.models.huggingface.model import HFModel
from posviz.models.huggingface.verify import verify

__all__ = ["HFCapture", "HFModel", "open_model", "verify"]
