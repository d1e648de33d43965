#!/usr/bin/python3
"""Writes train_formulas.json: what PyTorch's losses and optimisers give on small inputs, which the
unit tests of src/train compare with. Run with Debian's python3-torch; prints its version."""
import json, os
import torch
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def flat(t):
    return [float(x) for x in t.detach().reshape(-1)]


def optimisers():
    start = torch.randn(2, 3)
    gradients = [torch.randn(2, 3) for _ in range(4)]
    o = torch.optim
    cases = {
        'sgd': ({}, lambda p: o.SGD(p, lr=0.1)),
        'sgd momentum': ({'momentum': 0.9}, lambda p: o.SGD(p, lr=0.1, momentum=0.9)),
        'sgd dampening': ({'momentum': 0.9, 'dampening': 0.3},
                          lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.3)),
        'sgd nesterov decay': ({'momentum': 0.8, 'nesterov': 1, 'weight_decay': 0.05},
                               lambda p: o.SGD(p, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.05)),
        'adagrad': ({'rate_decay': 0.1, 'weight_decay': 0.02},
                    lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.02)),
        'rmsprop': ({}, lambda p: o.RMSprop(p, lr=0.1)),
        'rmsprop centered momentum': ({'momentum': 0.9, 'centered': 1, 'rho': 0.9},
                                      lambda p: o.RMSprop(p, lr=0.1, alpha=0.9, momentum=0.9, centered=True)),
        'adadelta': ({'weight_decay': 0.01}, lambda p: o.Adadelta(p, lr=0.1, weight_decay=0.01)),
        'adam': ({'weight_decay': 0.03}, lambda p: o.Adam(p, lr=0.1, weight_decay=0.03)),
        'adamw': ({'beta1': 0.8, 'beta2': 0.99}, lambda p: o.AdamW(p, lr=0.1, betas=(0.8, 0.99))),
        'adamw no decay': ({'weight_decay': 0.0}, lambda p: o.AdamW(p, lr=0.1, weight_decay=0.0)),
        'sgd clip norm': ({'clip_norm': 0.5}, lambda p: o.SGD(p, lr=0.1)),
        'sgd clip value': ({'clip_value': 0.4}, lambda p: o.SGD(p, lr=0.1)),
    }
    out = []
    for name, (options, make) in cases.items():
        x = start.clone().requires_grad_()
        optimiser = make([x])
        steps = []
        for g in gradients:
            x.grad = g.clone()
            if 'clip_norm' in options: torch.nn.utils.clip_grad_norm_([x], options['clip_norm'])
            if 'clip_value' in options: torch.nn.utils.clip_grad_value_([x], options['clip_value'])
            optimiser.step()
            steps.append(flat(x))
        out.append({'name': name, 'options': options, 'steps': steps})
    return {'start': flat(start), 'gradients': [flat(g) for g in gradients], 'cases': out}


def losses():
    scores = torch.randn(5, 4)
    targets = torch.tensor([1, 0, 3, -100, 2])
    weights = torch.rand(4) + 0.5
    shares = torch.rand(5, 4).softmax(-1)
    pixels, pixel_targets = torch.randn(2, 3, 2, 2), torch.randint(3, (2, 2, 2))
    values, wanted = torch.randn(3, 4) * 2, torch.randn(3, 4)
    bits = (torch.rand(3, 4) > 0.5).double()
    cases = []

    def case(kind, x, t, f, **options):
        x = x.clone().requires_grad_()
        loss = f(x)
        loss.backward()
        cases.append({'kind': kind, 'options': options, 'scores': flat(x), 'shape': list(x.shape),
                      'target': [v.item() for v in t.reshape(-1)], 'target_shape': list(t.shape),
                      'whole': not t.is_floating_point(), 'loss': float(loss), 'gradient': flat(x.grad)})

    ce = 'cross-entropy'
    case(ce, scores, targets, lambda x: F.cross_entropy(x, targets))
    case(ce, scores, targets, lambda x: F.cross_entropy(x, targets, label_smoothing=0.1), label_smoothing=0.1)
    case(ce, scores, targets, lambda x: F.cross_entropy(x, targets, weight=weights), class_weights=flat(weights))
    case(ce, scores, targets, lambda x: F.cross_entropy(x, targets, weight=weights, label_smoothing=0.2),
         class_weights=flat(weights), label_smoothing=0.2)
    case(ce, scores, shares, lambda x: F.cross_entropy(x, shares))
    case(ce, scores, shares, lambda x: F.cross_entropy(x, shares, label_smoothing=0.1), label_smoothing=0.1)
    case(ce, pixels, pixel_targets, lambda x: F.cross_entropy(x, pixel_targets))
    case(ce, pixels, pixel_targets, lambda x: F.cross_entropy(x, pixel_targets, label_smoothing=0.1), label_smoothing=0.1)
    text, tokens = torch.randn(2, 3, 4), torch.tensor([[1, 2, 0], [3, -100, 1]])
    case('next-token', text, tokens, lambda x: F.cross_entropy(x.reshape(-1, 4), tokens.reshape(-1)))
    case('binary-cross-entropy', values * 10, bits, lambda x: F.binary_cross_entropy_with_logits(x, bits))
    case('mse', values, wanted, lambda x: F.mse_loss(x, wanted))
    case('l1', values, wanted, lambda x: F.l1_loss(x, wanted))
    case('huber', values, wanted, lambda x: F.huber_loss(x, wanted, delta=0.7), delta=0.7)
    frames, letters = torch.randn(2, 6, 4), torch.tensor([[1, 2, 2], [3, 1, 0]])
    lengths, sizes = torch.tensor([6, 4]), torch.tensor([3, 2])
    case('ctc', frames, letters, lambda x: F.ctc_loss(x.log_softmax(-1).transpose(0, 1), letters, lengths, sizes))
    cases[-1].update(input_lengths=[6, 4], target_lengths=[3, 2])
    return cases


print('torch', torch.__version__)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'train_formulas.json'), 'w') as f:
    json.dump({'torch': torch.__version__, 'optimisers': optimisers(), 'losses': losses()}, f)
    f.write('\n')
