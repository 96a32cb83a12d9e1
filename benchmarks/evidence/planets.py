"""Planetary orbits in JSON, as the xVal paper has them (Golkar et al. 2023, section 3.3 and
appendix B.2).

In: a count and a seed. Out: one text per simulation, its quantities known: ``{"description":
    {"planet0": {"m": 2.38, "a": 2.96, "e": 1.73}, ..., "stepsize": 0.2}, "data": [[[2.6, -0.75],
    [0.81, 0.42]], ...]}``. Two to four planets of 1e-5 to 5e-5 solar masses (written as 1 to 5),
    axes equally spaced from 1 to between 1.5 and 3, eccentricities up to 0.1 (written as up to 2),
    starting angles of zero in 30% of the systems, else within ±π/6; steps of 0.2, 0.3, 0.5 or 0.8.
    Integrated by REBOUND's IAS15 (Rein and Liu 2012; Rein and Spiegel 2015).
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from typing import Any

STEPS = (0.2, 0.3, 0.5, 0.8)
UNSEEN_STEPS = (0.25, 0.4, 0.6, 0.7)
UNSEEN_AXES = (1.02, 1.15)  # in the training data an axis is 1, or at least 1 + 0.5 / 3
POINTS = 8
QUANTITIES = ("a", "e", "m", "stepsize")  # of the first planet, and of all


@dataclass(frozen=True)
class System:
    """A simulation as text; ``quantities`` are those that models are asked for, as they are
    written.
    """

    text: str
    quantities: dict[str, str]


def systems(count: int, seed: int, unseen: str | None = None) -> list[System]:
    """Simulations.

    Args:
        count: how many.
        seed: of what is drawn.
        unseen: ``"a"`` or ``"stepsize"``: this quantity has values that the training data do not
            have.
    """
    draw = random.Random(f"{seed} {unseen}")
    return [_system(draw, unseen) for _ in range(count)]


def _system(draw: random.Random, unseen: str | None) -> System:
    import rebound

    planets, furthest = draw.randint(2, 4), draw.uniform(1.5, 3)
    axes = [1 + (furthest - 1) * index / (planets - 1) for index in range(planets)]
    draw.shuffle(axes)
    if unseen == "a":
        axes[0] = draw.uniform(*UNSEEN_AXES)
    step = draw.choice(UNSEEN_STEPS if unseen == "stepsize" else STEPS)
    aligned = draw.random() < 0.3
    simulation, described = rebound.Simulation(), {}
    simulation.integrator = "ias15"
    simulation.add(m=1.0)
    for index, axis in enumerate(axes):
        mass, eccentricity = draw.uniform(1, 5), draw.uniform(0, 2)
        angle = 0.0 if aligned else draw.uniform(-math.pi / 6, math.pi / 6)
        simulation.add(m=mass * 1e-5, a=axis, e=eccentricity / 20, f=angle)
        described[f"planet{index}"] = {
            "m": _written(mass),
            "a": _written(axis),
            "e": _written(eccentricity),
        }
    data = []
    for point in range(POINTS):
        simulation.integrate(point * step)
        data.append([[_written(one.x), _written(one.y)] for one in simulation.particles[1:]])
    text = json.dumps(
        {"description": {**described, "stepsize": step}, "data": data}, separators=(", ", ":")
    )
    return System(
        text,
        {
            **{name: str(value) for name, value in described["planet0"].items()},
            "stepsize": str(step),
        },
    )


def _written(value: float) -> Any:
    """With three significant digits."""
    return float(f"{value:.3g}")
