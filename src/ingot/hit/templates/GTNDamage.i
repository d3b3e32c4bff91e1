[Preset]
  section = Models
  doc = 'Rate-independent plasticity of a porous metal: the yield surface of Gurson, Tvergaard and
         Needleman, whose voids grow with plastic dilation. Reads strain, gives stress,
         plastic_strain, equivalent_plastic_strain and void_fraction, whose initial value a
         driver gives.'
{% include "parts/elastic_options.hit" %}
{% include "parts/hardening_options.hit" %}
  [q1]
    kind = parameter
    default = 1.5
    doc = 'weight of the voids'
  []
  [q2]
    kind = parameter
    default = 1.0
    doc = 'weight of the pressure'
  []
  [q3]
    kind = parameter
    default = 2.25
    doc = 'weight of the voids squared, q1^2 as a rule'
  []
[]

{% set iso = isotropic_hardening != "none" %}
[Models]
{% include "parts/isotropic_hardening.hit" %}
  [{{ name }}_elastic_strain]
    type = SR2LinearCombination
    from = 'strain plastic_strain'
    to = elastic_strain
    weights = '1 -1'
  []
  [{{ name }}_elasticity]
    type = LinearIsotropicElasticity
    coefficients = '${E} ${nu}'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = elastic_strain
  []
  [{{ name }}_mandel_stress]
    type = IsotropicMandelStress
    cauchy_stress = stress
  []
  [{{ name }}_von_mises]
    type = SR2Invariant
    invariant_type = VONMISES
    tensor = mandel_stress
    invariant = flow_invariant
  []
  [{{ name }}_pressure]
    type = SR2Invariant
    invariant_type = I1
    tensor = mandel_stress
    invariant = poro_invariant
  []
  [{{ name }}_yield]
    type = GTNYieldFunction
    yield_stress = ${yield_stress}
    q1 = ${q1}
    q2 = ${q2}
    q3 = ${q3}
{% if iso %}
    isotropic_hardening = isotropic_hardening
{% endif %}
  []
  [{{ name }}_flow]
    type = ComposedModel
    models = '{{ name }}_von_mises {{ name }}_pressure {{ name }}_yield'
  []
  [{{ name }}_normality]
    type = Normality
    model = {{ name }}_flow
    function = yield_function
    from = 'mandel_stress{{ " isotropic_hardening" if iso }}'
    to = 'flow_direction{{ " isotropic_hardening_direction" if iso }}'
  []
  [{{ name }}_plastic_strain_rate]
    type = AssociativePlasticFlow
  []
  [{{ name }}_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = plastic_strain
  []
{% if iso %}
  [{{ name }}_equivalent_plastic_strain_rate]
    type = AssociativeIsotropicPlasticHardening
  []
  [{{ name }}_equivalent_plastic_strain]
    type = ScalarBackwardEulerTimeIntegration
    variable = equivalent_plastic_strain
  []
{% endif %}
  [{{ name }}_void_fraction_rate]
    type = GursonCavitation
  []
  [{{ name }}_void_fraction]
    type = ScalarBackwardEulerTimeIntegration
    variable = void_fraction
  []
  [{{ name }}_consistency]
    type = MinMapComplementarity
    a = yield_function
    a_inequality = LE
    b = flow_rate
  []
  [{{ name }}_residual]
    type = ComposedModel
    models = '{{ name ~ "_isotropic_hardening " if iso }}{{ name }}_elastic_strain {{ name }}_elasticity
              {{ name }}_mandel_stress {{ name }}_von_mises {{ name }}_pressure {{ name }}_yield
              {{ name }}_normality {{ name }}_plastic_strain_rate {{ name }}_plastic_strain
{% if iso %}
              {{ name }}_equivalent_plastic_strain_rate {{ name }}_equivalent_plastic_strain
{% endif %}
              {{ name }}_void_fraction_rate {{ name }}_void_fraction {{ name }}_consistency'
  []
{% set scalars = (["equivalent_plastic_strain"] if iso else []) + ["void_fraction"] %}
{% set state = ["plastic_strain"] + scalars %}
  [{{ name }}_predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = plastic_strain
    unknowns_Scalar = '{{ scalars | join(" ") }} flow_rate'
  []
  [{{ name }}_return_map]
    type = ImplicitUpdate
    equation_system = {{ name }}_system
    solver = {{ name }}_newton
    predictor = {{ name }}_predictor
  []
  [{{ name }}]
    type = ComposedModel
    models = '{{ name }}_return_map {{ name }}_elastic_strain {{ name }}_elasticity'
    additional_outputs = '{{ state | join(" ") }}'
  []
[]

[EquationSystems]
  [{{ name }}_system]
    type = NonlinearSystem
    model = {{ name }}_residual
    unknowns = '{{ state | join(" ") }} flow_rate'
    residuals = '{{ state | join("_residual ") }}_residual complementarity'
  []
[]

{% include "parts/newton.hit" %}
