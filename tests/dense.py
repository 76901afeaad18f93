"""The paper's equations for one system, as plain products and loops.

Slow and obvious: the oracle that the layers are compared with. Graphs are
dense here, entry `[i, j]` belonging to the edge from sender `j` to receiver
`i`, and every network maps one row at a time, in evaluation mode.
"""
import torch

from pyg_fnri.nn.encoders import LEAST_DISTANCE, POWERS


def of_edges(dense, edge_index):
    """Rows `[E, ...]` of a dense graph `[N, N, ...]`, edge by edge."""
    sender, receiver = edge_index
    return dense[receiver, sender]


def to_dense(rows, edge_index, num_particles):
    """A dense graph `[N, N, ...]` of rows `[E, ...]`, 0 where no edge is."""
    dense = rows.new_zeros((num_particles, num_particles) + rows.shape[1:])
    for row, (j, i) in zip(rows, edge_index.t().tolist()):
        dense[i, j] = row
    return dense


def linear(f, row):
    return f.weight @ row + f.bias


def elu(row):
    return torch.where(row > 0, row, row.exp() - 1)


def relu(row):
    return torch.where(row > 0, row, torch.zeros_like(row))


def batch_norm(f, row):
    """With the running statistics."""
    row = (row - f.running_mean) / (f.running_var + f.eps).sqrt()
    return row * f.weight + f.bias


def mlp(f, row):
    """Linear, ELU, linear, ELU, and batch norm."""
    return batch_norm(f.norm, elu(linear(f.lin2, elu(linear(f.lin1, row)))))


def encoder(f, x):
    """Supplement, eqs. 3-6: trajectories `[N, T, F]`, logits `[N, N, C]`."""
    h1 = [mlp(f.node_mlp1, x_i.flatten()) for x_i in x]
    return passes(f, {
        (i, j): torch.cat([h1[i], h1[j]])
        for i, j in pairs(x.size(0))
    }, x.size(0))


def cnn_encoder(f, x):
    """NRI's convolutional encoder: trajectories `[N, T, F]`, logits
    `[N, N, C]`."""
    return passes(
        f, {
            (i, j): trajectory_cnn(f.cnn, torch.cat([x[i], x[j]], -1))
            for i, j in pairs(x.size(0))
        }, x.size(0))


def equivariant_encoder(f, x):
    """Positions and vectors `[N, T, 2 d]`, logits `[N, N, C]`."""
    def log(pull):
        return pull.sign() * (1 + pull.abs()).log()

    place, vector = x.chunk(2, dim=-1)
    edges = pairs(x.size(0))
    distance, line = {}, {}
    for i, j in edges:
        line[i, j] = place[j] - place[i]
        r = line[i, j].norm(dim=-1).clamp(min=LEAST_DISTANCE)
        distance[i, j], line[i, j] = r, line[i, j] / r.unsqueeze(-1)
    pull = {(i, j): (vector[i] * line[i, j]).sum(-1) for i, j in edges}
    h = {
        (i, j):
        mlp(f.pair_mlp,
            torch.cat([distance[i, j].log(),
                       log(pull[i, j]),
                       log(pull[j, i])]))
        for i, j in edges
    }
    for strength, round_mlp in zip(f.strengths, f.round_mlps):
        own = {
            (i, j):
            sum(c * distance[i, j]**p
                for c, p in zip(linear(strength, h[i, j]), POWERS))
            for i, j in edges
        }
        for i, j in edges:
            left = vector[i] - sum(own[i, k].unsqueeze(-1) * line[i, k]
                                   for k in range(x.size(0)) if k != i)
            pull[i, j] = (left * line[i, j]).sum(-1) + own[i, j]
        h = {
            (i, j):
            mlp(round_mlp,
                torch.cat([log(pull[i, j]),
                           log(pull[j, i]), h[i, j]]))
            for i, j in edges
        }
    return passes(f, h, x.size(0))


def trajectory_cnn(f, rows):
    """One sequence `[T, F]`."""
    def convolution(conv, rows):
        size = conv.kernel_size[0]
        return [
            conv.bias + sum(conv.weight[:, :, k] @ rows[t + k]
                            for k in range(size))
            for t in range(len(rows) - size + 1)
        ]

    rows = [
        batch_norm(f.norm1, relu(row)) for row in convolution(f.conv1, rows)
    ]
    rows = [torch.maximum(*rows[t:t + 2]) for t in range(0, len(rows) - 1, 2)]
    rows = [
        batch_norm(f.norm2, relu(row)) for row in convolution(f.conv2, rows)
    ]
    score = [(f.conv_score.weight[0, :, 0] @ row).exp() for row in rows]
    value = convolution(f.conv_value, rows)
    return sum(a * row for a, row in zip(score, value)) / sum(score)


def pairs(num_particles):
    return [(i, j) for i in range(num_particles) for j in range(num_particles)
            if i != j]


def passes(f, h_edge, num_particles):
    """Eqs. 4-6: what each edge starts with, by pair `(i, j)`; logits
    `[N, N, C]`."""
    h1_edge = {pair: mlp(f.edge_mlp1, row) for pair, row in h_edge.items()}
    h2 = []
    for i in range(num_particles):
        received = sum(h1_edge[i, j] for j in range(num_particles) if i != j)
        h2.append(mlp(f.node_mlp2, received / num_particles))
    logits = h2[0].new_zeros(num_particles, num_particles, f.out_channels)
    for i, j in h1_edge:
        h2_edge = mlp(f.edge_mlp2, torch.cat([h2[i], h2[j], h1_edge[i, j]]))
        logits[i, j] = linear(f.lin, h2_edge)
    return logits


def multiplex_conv(f, x, z):
    """Eqs. 1 and 2: features `[N, F]`, graph `[N, N, C]`, features
    `[N, F']`."""
    out = []
    for i in range(x.size(0)):
        received = x.new_zeros(f.hidden_channels)
        for j in range(x.size(0)):
            pair = torch.cat([x[i], x[j]])
            for k in range(f.edge_dim if i != j else 0):
                received = received + z[i, j, k] * messages(f, pair, k)
        out.append(node_mlp(f.node_mlp, torch.cat([x[i], received])))
    return torch.stack(out)


def messages(f, pair, k):
    """The message network of a channel: a pair's features to `[H]`."""
    h = relu(pair @ f.weight1[k] + f.bias1[k])
    return relu(h @ f.weight2[k] + f.bias2[k])


def node_mlp(f, row):
    """Three linear layers, ReLU between them."""
    return linear(f[4], relu(linear(f[2], relu(linear(f[0], row)))))


def recurrent_conv(f, x, h, z):
    """NRI's recurrent layer: features `[N, F]`, hidden states `[N, H]`, graph
    `[N, N, C]`; features `[N, F']` and hidden states `[N, H]`."""
    hidden, out, new = f.hidden_channels, [], []
    for i in range(x.size(0)):
        received = torch.zeros_like(h[i])
        for j in range(x.size(0)):
            for k in range(f.edge_dim if i != j else 0):
                part = slice(k * hidden, (k + 1) * hidden)
                first = torch.cat([f.lin_i.weight, f.lin_j.weight], -1)[part]
                message = first @ torch.cat([h[i], h[j]]) + f.lin_i.bias[part]
                message = message.tanh() @ f.weight[k] + f.bias[k]
                received = received + z[i, j, k] * message.tanh()
        new.append(gru(f.gru, torch.cat([received, x[i]]), h[i]))
        out.append(node_mlp(f.node_mlp, new[i]))
    return torch.stack(out), torch.stack(new)


def gru(f, x, h):
    """A gated recurrent unit: reset and update gates, candidate."""
    of_x = (f.weight_ih @ x + f.bias_ih).chunk(3)
    of_h = (f.weight_hh @ h + f.bias_hh).chunk(3)
    reset = (of_x[0] + of_h[0]).sigmoid()
    update = (of_x[1] + of_h[1]).sigmoid()
    candidate = (of_x[2] + reset * of_h[2]).tanh()
    return (1 - update) * candidate + update * h


def rollout(step, x, pred_steps):
    """Supplement, section 1.5: frames 1, ..., T - 1 of `[N, T, F]`, from the
    true state every `pred_steps` steps."""
    state, out = x[:, 0], []
    for t in range(x.size(1) - 1):
        if t % pred_steps == 0:
            state = x[:, t]
        state = step(state)
        out.append(state)
    return torch.stack(out, dim=1)
