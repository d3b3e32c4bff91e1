[Preset]
  section = Models
  doc = 'Viscoplasticity of Chaboche: plastic flow by a power of the overstress, around back stresses
         with dynamic and, if asked for, static recovery. Reads strain, gives stress, back stresses and what hardens.'
{% include "parts/elastic_options.hit" %}
{% include "parts/flow_options.hit" %}
{% include "parts/hardening_options.hit" %}
{% include "parts/measure_option.hit" %}
  [C]
    kind = parameters
    doc = 'growth of each back stress; as many entries as there are back stresses'
  []
  [g]
    kind = parameters
    like = C
    doc = 'dynamic recovery of each back stress'
  []
  [static_recovery]
    kind = flag
    default = false
    doc = 'whether back stresses recover at rest, too, by A |X|^(a - 1) X'
  []
  [A]
    kind = parameters
    like = C
    when = 'static_recovery true'
    doc = 'static recovery of each back stress'
  []
  [a]
    kind = parameters
    like = C
    when = 'static_recovery true'
    doc = 'exponent of the static recovery of each back stress'
  []
[]

{% set back = range(1, C | length + 1) | list %}
{% include "parts/viscoplasticity.hit" %}
