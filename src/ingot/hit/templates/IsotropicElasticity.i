[Preset]
  section = Models
  doc = 'Small-strain elasticity of an isotropic solid. Reads strain, gives stress.'
{% include "parts/elastic_options.hit" %}
[]

[Models]
  [{{ name }}]
    type = LinearIsotropicElasticity
    coefficients = '${E} ${nu}'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
