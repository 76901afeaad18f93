"""The paper's equations for one system, as plain products and loops.

Slow and obvious: the oracle that the layers are compared with. Graphs are
dense here, entry `[i, j]` belonging to the edge from sender `j` to receiver
`i`, and every network maps one row at a time, in evaluation mode.
"""
import torch


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


def mlp(f, row):
    """Linear, ELU, linear, ELU, and batch norm with the running statistics."""
    row = elu(linear(f.lin2, elu(linear(f.lin1, row))))
    norm = f.norm
    row = (row - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    return row * norm.weight + norm.bias


def encoder(f, x):
    """Supplement, eqs. 3-6: trajectories `[N, T, F]`, logits `[N, N, C]`."""
    num_particles = x.size(0)
    pairs = [(i, j) for i in range(num_particles) for j in range(num_particles)
             if i != j]
    h1 = [mlp(f.node_mlp1, x[i].flatten()) for i in range(num_particles)]
    h1_edge = {
        (i, j): mlp(f.edge_mlp1, torch.cat([h1[i], h1[j]]))
        for i, j in pairs
    }
    h2 = []
    for i in range(num_particles):
        received = sum(h1_edge[i, j] for j in range(num_particles) if i != j)
        h2.append(mlp(f.node_mlp2, received / num_particles))
    logits = x.new_zeros(num_particles, num_particles, f.out_channels)
    for i, j in pairs:
        h2_edge = mlp(f.edge_mlp2, torch.cat([h2[i], h2[j], h1_edge[i, j]]))
        logits[i, j] = linear(f.lin, h2_edge)
    return logits


def multiplex_conv(f, x, z):
    """Eqs. 1 and 2: features `[N, F]`, graph `[N, N, C]`, features
    `[N, F']`."""
    lin1, lin2, lin3 = f.node_mlp[0], f.node_mlp[2], f.node_mlp[4]
    out = []
    for i in range(x.size(0)):
        received = x.new_zeros(f.hidden_channels)
        for j in range(x.size(0)):
            pair = torch.cat([x[i], x[j]])
            for k in range(f.edge_dim if i != j else 0):
                h = relu(pair @ f.weight1[k] + f.bias1[k])
                h = relu(h @ f.weight2[k] + f.bias2[k])
                received = received + z[i, j, k] * h
        h = relu(linear(lin1, torch.cat([x[i], received])))
        out.append(linear(lin3, relu(linear(lin2, h))))
    return torch.stack(out)


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
