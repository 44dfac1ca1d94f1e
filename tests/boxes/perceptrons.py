"""The kernel Perceptron (1.1) and the budget perceptrons (2.1 - 2.5)."""

import numpy as np

from boxes.common import counts_as_error, direction, history, margin, mistaken, norm


def kernel_perceptron(K, y, *, outputs=1, strict_sign_update=False):
    """1.1: on a mistake add y (several classes: e_y - e_s)."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if mistaken(s, y[t], strict_sign_update):
            f[t] = direction(s, y[t])
        F[t + 1] = f
    return F


def kernel_perceptron_regression(K, y, *, eta, epsilon):
    """1.1, regression: outside the tube add eta sgn(r)."""
    F = history(len(y))
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        if abs(r) > epsilon:
            f[t] = eta * np.sign(r)
        F[t + 1] = f
    return F


def stoptron(K, y, *, outputs=1, budget, strict_sign_update=False):
    """2.1: the Perceptron until the budget is full, frozen from then on."""
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if mistaken(s, y[t], strict_sign_update) and len(S) < budget:
            f[t] = direction(s, y[t])
            S.append(t)
        F[t + 1] = f
    return F


def stoptron_regression(K, y, *, budget, eta, epsilon):
    """2.1 on the regression rule of 1.1."""
    F = history(len(y))
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        if abs(r) > epsilon and len(S) < budget:
            f[t] = eta * np.sign(r)
            S.append(t)
        F[t + 1] = f
    return F


def budget_perceptron(K, y, *, outputs=1, budget, beta=0.0, variant="plain"):
    """2.2: make room by removing the support vector that keeps the largest margin without itself.

    "distil" goes on after the insertion, removing while some support vector keeps a margin above beta.
    """
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if within_tolerance(s, y[t], beta):
            if len(S) == budget:
                position = int(np.argmax([margin_kept(K, y, f, j) for j in S]))
                f[S.pop(position)] = 0
            f[t] = direction(s, y[t])
            S.append(t)
            while variant == "distil" and max(margin_kept(K, y, f, j) for j in S) > beta:
                position = int(np.argmax([margin_kept(K, y, f, j) for j in S]))
                f[S.pop(position)] = 0
        F[t + 1] = f
    return F


def tighter_perceptron(K, y, *, outputs=1, budget, beta=0.0, recent=None):
    """2.3: make room by removing the support vector whose absence costs fewest errors.

    They are counted on S and the last `recent` examples (None: budget many), the current one included. Ties
    go to the largest margin of 2.2, then to the oldest.
    """
    F = history(len(y), outputs)
    S = []
    p = budget if recent is None else recent
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if within_tolerance(s, y[t], beta):
            if len(S) == budget:
                evaluated = sorted({e for e in range(t + 1) if e > t - p} | set(S))
                costs = [(errors_without(K, y, f, j, evaluated), -margin_kept(K, y, f, j)) for j in S]
                f[S.pop(costs.index(min(costs)))] = 0
            f[t] = direction(s, y[t])
            S.append(t)
        F[t + 1] = f
    return F


def within_tolerance(s, y, beta):
    """2.2: the update test, y f <= beta; with several classes at beta = 0 a mistake."""
    return mistaken(s, y) or (beta > 0 and margin(s, y) <= beta)


def margin_kept(K, y, f, j):
    """2.2: the margin of support vector j by the model without it."""
    return margin(K[j] @ f - f[j] * K[j, j], y[j])


def errors_without(K, y, f, j, evaluated):
    """2.3: the number of errors on the evaluated examples by the model without support vector j."""
    rest = f.copy()
    rest[j] = 0
    return sum(counts_as_error(K[e] @ rest, y[e]) for e in evaluated)


def rbp(K, y, *, outputs=1, budget, strict_sign_update=False, choose=None):
    """2.4: make room by removing a support vector uniformly at random, never the new one."""
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if mistaken(s, y[t], strict_sign_update):
            if len(S) == budget:
                f[S.pop(choose(list(S), None))] = 0
            f[t] = direction(s, y[t])
            S.append(t)
        F[t + 1] = f
    return F


def rbp_regression(K, y, *, budget, eta, epsilon, choose=None):
    """2.4 on the regression rule of 1.1."""
    F = history(len(y))
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        if abs(r) > epsilon:
            if len(S) == budget:
                f[S.pop(choose(list(S), None))] = 0
            f[t] = eta * np.sign(r)
            S.append(t)
        F[t + 1] = f
    return F


def forgetron(K, y, *, outputs=1, budget, variant="self-tuned", legacy_root=False):
    """2.5: on a mistake insert, shrink everything by phi, remove the oldest if there is one too many.

    "self-tuned" shrinks only before a removal, "basic" on every mistake.
    """
    F = history(len(y), outputs)
    S = []
    M, Q = 0, 0.0
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if mistaken(s, y[t]):
            M += 1
            f[t] = direction(s, y[t])
            S.append(t)
            if variant == "basic":
                f *= basic_shrink(budget, norm(K, f))
            elif len(S) > budget:
                r = S[0]
                if outputs == 1:
                    sigma, mu = abs(f[r, 0]), y[r] * (K[r] @ f)[0]
                else:
                    sigma, mu = abs(f[r, int(y[r])]), (K[r] @ f)[int(y[r])]
                phi = largest_shrink(sigma, mu, Q, M, legacy_root)
                f *= phi
                Q += psi(sigma * phi, phi * mu)
            if len(S) > budget:
                f[S.pop(0)] = 0
        F[t + 1] = f
    return F


def forgetron_regression(K, y, *, budget, eta, epsilon, variant="self-tuned", legacy_root=False):
    """2.5, as run on regression: step eta sgn(r), sigma = abs(a_r), mu = abs(f'(x_r))."""
    F = history(len(y))
    S = []
    M, Q = 0, 0.0
    for t in range(len(y)):
        f = F[t].copy()
        residual = y[t] - (K[t] @ f)[0]
        if abs(residual) > epsilon:
            M += 1
            f[t] = eta * np.sign(residual)
            S.append(t)
            if variant == "basic":
                f *= basic_shrink(budget, norm(K, f))
            elif len(S) > budget:
                r = S[0]
                sigma, mu = abs(f[r, 0]), abs((K[r] @ f)[0])
                phi = largest_shrink(sigma, mu, Q, M, legacy_root)
                f *= phi
                Q += psi(sigma * phi, phi * mu)
            if len(S) > budget:
                f[S.pop(0)] = 0
        F[t + 1] = f
    return F


def basic_shrink(budget, length):
    """2.5: phi of the basic rule, for a function of that norm."""
    U = np.sqrt((budget + 1) / np.log(budget + 1)) / 4
    return min((budget + 1) ** (-1 / (2 * (budget + 1))), U / length)


def psi(sigma, mu):
    """2.5: the damage that removing a support vector of weight sigma and margin mu may do."""
    return sigma**2 + 2 * sigma * (1 - mu)


def largest_shrink(sigma, mu, Q, M, legacy_root):
    """2.5: the largest phi in (0, 1] with psi(sigma phi, phi mu) + Q <= (15/32) M.

    E10: legacy_root is the released code, which takes the larger root, above 1, of a parabola that opens
    downwards.
    """
    A, B, C = sigma**2 - 2 * sigma * mu, 2 * sigma, Q - 15 / 32 * M
    if A + B + C <= 0:
        return 1.0
    root = np.sqrt(B**2 - 4 * A * C)
    if legacy_root and A < 0:
        return (-B - root) / (2 * A)
    return -2 * C / (B + root)
