"""What config.json alone says of a transformers model, against the configurations that transformers itself writes."""

from __future__ import annotations

import pytest
import transformers

from posviz.checkpoint.foreign import method_in


@pytest.mark.parametrize(
    ("config", "method"),
    [
        (transformers.LlamaConfig(), "rope"),
        (transformers.GPTNeoXConfig(), "rope"),
        (transformers.GPTJConfig(), "rope"),
        (transformers.BloomConfig(), "alibi"),
        (transformers.MptConfig(), "alibi"),
        (transformers.FalconConfig(alibi=True), "alibi"),
        (transformers.FalconConfig(alibi=False), "rope"),
        (transformers.T5Config(), "t5"),
        (transformers.UMT5Config(), "t5"),
        (transformers.GPT2Config(), "learned"),
        (transformers.BertConfig(), "learned"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.model_type,
)
def test_method_is_read_off_the_configuration(config: transformers.PreTrainedConfig, method: str) -> None:
    found, why = method_in(config.to_dict())
    assert found == method
    assert config.model_type in why


def test_nothing_is_claimed_where_the_configuration_is_silent() -> None:
    found, why = method_in({"model_type": "strange"})
    assert found is None
    assert "strange" in why
