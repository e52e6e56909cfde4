"""What people do today: a transformers model with eager attention, all attentions returned, twelve imshow."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from transformers import AutoModelForCausalLM

folder, out = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
model.eval()
ids = torch.randint(0, model.config.vocab_size, (1, 512), generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    attentions = model(ids, output_attentions=True).attentions
figure, axes = plt.subplots(4, 3, figsize=(12, 16))
for head, panel in enumerate(axes.flat):
    picture = panel.imshow(attentions[-1][0, head].numpy())
    panel.set_title(f"Head {head + 1}")
    figure.colorbar(picture, ax=panel)
plt.tight_layout()
plt.savefig(out)
