[Preset]
  section = Models
  doc = 'Rate-independent plasticity with the yield surface of von Mises, solved by a return map.
         Reads strain, gives stress, plastic_strain and what hardens.'
{% include "parts/elastic_options.hit" %}
{% include "parts/hardening_options.hit" %}
{% include "parts/measure_option.hit" %}
  [kinematic_hardening]
    kind = choice
    choices = 'none linear armstrong_frederick'
    default = none
    doc = 'how the yield surface moves: not, by kinematic_modulus, or by back stresses that saturate'
  []
  [kinematic_modulus]
    kind = parameter
    when = 'kinematic_hardening linear'
    doc = 'back stress per plastic strain'
  []
  [C]
    kind = parameters
    when = 'kinematic_hardening armstrong_frederick'
    doc = 'growth of each back stress'
  []
  [g]
    kind = parameters
    like = C
    when = 'kinematic_hardening armstrong_frederick'
    doc = 'dynamic recovery of each back stress'
  []
[]

{% set iso = isotropic_hardening != "none" %}
{% set kin = kinematic_hardening != "none" %}
{% set linear = kinematic_hardening == "linear" %}
{% set back = [] if kinematic_hardening != "armstrong_frederick" else range(1, C | length + 1) | list %}
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
{% if linear %}
  [{{ name }}_back_stress]
    type = LinearKinematicHardening
    hardening_modulus = {{ "${fparse kinematic_modulus*2/3}" if measure == "uniaxial" else "${kinematic_modulus}" }}
  []
{% elif back %}
  [{{ name }}_back_stress]
    type = SR2LinearCombination
    from = '{% for i in back %}back_stress_{{ i }} {% endfor %}'
    to = back_stress
  []
{% endif %}
{% if kin %}
  [{{ name }}_overstress]
    type = SR2LinearCombination
    from = 'mandel_stress back_stress'
    to = overstress
    weights = '1 -1'
  []
{% endif %}
  [{{ name }}_von_mises]
    type = SR2Invariant
    invariant_type = VONMISES
    tensor = {{ "overstress" if kin else "mandel_stress" }}
    invariant = effective_stress
  []
  [{{ name }}_yield]
    type = YieldFunction
    yield_stress = ${yield_stress}
{% if iso %}
    isotropic_hardening = isotropic_hardening
{% endif %}
  []
  [{{ name }}_flow]
    type = ComposedModel
    models = '{{ name ~ "_overstress " if kin }}{{ name }}_von_mises {{ name }}_yield'
  []
  [{{ name }}_normality]
    type = Normality
    model = {{ name }}_flow
    function = yield_function
    from = 'mandel_stress{{ " back_stress" if linear }}{{ " isotropic_hardening" if iso }}'
    to = 'flow_direction{{ " kinematic_hardening_direction" if linear }}{{ " isotropic_hardening_direction" if iso }}'
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
{% if linear %}
  [{{ name }}_kinematic_plastic_strain_rate]
    type = AssociativeKinematicPlasticHardening
  []
  [{{ name }}_kinematic_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = kinematic_plastic_strain
  []
{% endif %}
{% for i in back %}
  [{{ name }}_back_stress_{{ i }}_rate]
    type = FredrickArmstrongPlasticHardening
    back_stress = back_stress_{{ i }}
    C = ${C_{{ i }}}
    g = {{ "${fparse g_" ~ i ~ "*sqrt(2/3)}" if measure == "uniaxial" else "${g_" ~ i ~ "}" }}
  []
  [{{ name }}_back_stress_{{ i }}]
    type = SR2BackwardEulerTimeIntegration
    variable = back_stress_{{ i }}
  []
{% endfor %}
  [{{ name }}_consistency]
    type = MinMapComplementarity
    a = yield_function
    a_inequality = LE
    b = flow_rate
  []
  [{{ name }}_residual]
    type = ComposedModel
    models = '{{ name ~ "_isotropic_hardening " if iso }}{{ name }}_elastic_strain {{ name }}_elasticity
              {{ name }}_mandel_stress {{ name ~ "_back_stress " ~ name ~ "_overstress " if kin }}
              {{ name }}_von_mises {{ name }}_yield {{ name }}_normality
              {{ name }}_plastic_strain_rate {{ name }}_plastic_strain {{ name }}_consistency
{% if iso %}
              {{ name }}_equivalent_plastic_strain_rate {{ name }}_equivalent_plastic_strain
{% endif %}
{% if linear %}
              {{ name }}_kinematic_plastic_strain_rate {{ name }}_kinematic_plastic_strain
{% endif %}
{% for i in back %}
              {{ name }}_back_stress_{{ i }}_rate {{ name }}_back_stress_{{ i }}
{% endfor %}'
  []
{% set tensors = ["plastic_strain"] + (["kinematic_plastic_strain"] if linear else []) %}
{% for i in back %}{% set _ = tensors.append("back_stress_" ~ i) %}{% endfor %}
{% set state = tensors + (["equivalent_plastic_strain"] if iso else []) %}
  [{{ name }}_predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = '{{ tensors | join(" ") }}'
    unknowns_Scalar = '{{ "equivalent_plastic_strain " if iso }}flow_rate'
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
