"""The benchmark's peer: a GPT-2 as PyTorch users write it, with fused attention and eager steps."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Pre-norm decoder block."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """Takes and returns float `[B, T, D]`."""
        batch, time, width = x.shape
        projected = self.query_key_value(self.attention_norm(x)).split(width, dim=-1)
        query, key, value = (
            part.view(batch, time, self.heads, -1).transpose(1, 2) for part in projected
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, time, width))
        hidden = functional.gelu(self.up(self.feedforward_norm(x)), approximate="tanh")
        return x + self.down(hidden)


class GPT(nn.Module):
    """Learned positions, tied head."""

    def __init__(self, vocabulary_size, width, layers, heads, context_length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary_size, width)
        self.positions = nn.Embedding(context_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        # As GPT-2. Of PyTorch's own tables softmax makes denormal numbers, which are slow.
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, token_ids):
        """Takes ids `[B, T]`, returns logits `[B, T, V]`."""
        x = self.tokens(token_ids) + self.positions(torch.arange(token_ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def make_step(shape, inputs, targets):
    """Returns a function that makes one training step and waits for it."""
    model = GPT(**shape)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    inputs, targets = torch.from_numpy(inputs).long(), torch.from_numpy(targets).long()

    def step():
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step
