"""PyTorch's own layers, trained eagerly as its users do."""

import time

import torch
from torch import nn

from peers.recurrent_shapes import LSTMShape


class LanguageModel(nn.Module):
    """`nn.LSTM` between a table and a head."""

    def __init__(self, shape):
        super().__init__()
        self.table = nn.Embedding(shape.vocabulary_size, shape.width)
        self.lstm = nn.LSTM(shape.width, shape.width, shape.layers, batch_first=True)
        self.head = nn.Linear(shape.width, shape.vocabulary_size)

    def forward(self, ids):
        return self.head(self.lstm(self.table(ids))[0])


class Translator(nn.Module):
    """A bidirectional LSTM, and Bahdanau's decoder with its keys projected once."""

    def __init__(self, shape):
        super().__init__()
        d = shape.width
        self.table = nn.Embedding(shape.vocabulary_size, d)
        self.encoder = nn.LSTM(d, d, batch_first=True, bidirectional=True)
        self.keys = nn.Linear(2 * d, d, bias=False)
        self.query = nn.Linear(d, d, bias=False)
        self.score = nn.Linear(d, 1, bias=False)
        self.cell = nn.LSTMCell(3 * d, d)
        self.output = nn.Linear(3 * d, d)
        self.head = nn.Linear(d, shape.vocabulary_size)

    def forward(self, ids):
        memory, x = self.encoder(self.table(ids))[0], self.table(ids)
        keys = self.keys(memory)
        h = c = keys.new_zeros(len(ids), keys.shape[-1])
        outputs = []
        for step in range(ids.shape[1]):
            weights = self.score(torch.tanh(keys + self.query(h)[:, None])).softmax(dim=1)
            context = (weights.transpose(1, 2) @ memory)[:, 0]
            h, c = self.cell(torch.cat([x[:, step], context], dim=-1), (h, c))
            outputs.append(torch.cat([context, h], dim=-1))
        return self.head(torch.tanh(self.output(torch.stack(outputs, dim=1))))


def train(shape, inputs, targets, steps, mode):
    """Returns the seconds of each step."""
    model = LanguageModel(shape) if isinstance(shape, LSTMShape) else Translator(shape)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ids, targets = (torch.from_numpy(x).long() for x in (inputs, targets))
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
    return seconds
