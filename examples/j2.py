"""Rate-independent J2 plasticity written in Python, through growing cycles: writes j2.png."""

import numpy as np

from ingot import compose, implicit, laws, transient

moduli = {"coefficients": [2e5, 0.3], "coefficient_types": ["YOUNGS_MODULUS", "POISSONS_RATIO"]}
elastic = laws.LinearIsotropicElasticity(strain="elastic_strain", **moduli)
split = laws.SR2LinearCombination(from_=["strain", "Ep"], weights=[1, -1], to="elastic_strain")
update = implicit(
    split, elastic, laws.SR2BackwardEulerTimeIntegration(variable="Ep"),
    laws.SR2Invariant(tensor="stress", invariant="effective_stress", invariant_type="VONMISES"),
    laws.VoceIsotropicHardening(saturated_hardening=80.0, saturation_rate=40.0),
    laws.YieldFunction(yield_stress=200.0, isotropic_hardening="isotropic_hardening"),
    laws.AssociativeJ2FlowDirection(mandel_stress="stress"),
    laws.AssociativePlasticFlow(flow_rate="gamma", plastic_strain_rate="Ep_rate"),
    laws.ScalarBackwardEulerTimeIntegration(variable="equivalent_plastic_strain", rate="gamma"),
    laws.MinMapComplementarity(a="yield_function", b="gamma", complementarity="gamma_residual"),
    unknowns=["Ep", "equivalent_plastic_strain", "gamma"], guess="old")  # fmt: skip
model = compose(update, split, elastic)
time = np.linspace(0, 3, 241)
result = transient(model, time=time, strain=time * np.sin(6 * time) / 250, control="uniaxial").run()
result.plot("strain.xx:stress.xx").savefig("j2.png")
