[Preset]
  section = Models
  doc = 'Viscoplasticity of Perzyna: plastic flow at the rate (f / eta)^n of the overstress f of von
         Mises. Reads strain, gives stress and what hardens.'
{% include "parts/elastic_options.hit" %}
{% include "parts/flow_options.hit" %}
{% include "parts/hardening_options.hit" %}
{% include "parts/measure_option.hit" %}
[]

{% set back = [] %}
{% include "parts/viscoplasticity.hit" %}
