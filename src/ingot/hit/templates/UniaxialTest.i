[Preset]
  section = Drivers
  doc = 'Tension and compression along x through turning points, at a constant rate, with no stress
         in other directions: monotonic for one point, cyclic for several. A model that reads strain
         and gives stress is wrapped in a solve for the strain; results hold both.'
  [model]
    kind = name
    doc = 'the model, which reads what `input` says'
  []
  [strain]
    kind = numbers
    doc = 'turning points, one after the other; the first step starts at zero'
  []
  [cycles]
    kind = count
    default = 1
    doc = 'how often the turning points are passed'
  []
  [steps]
    kind = count
    default = 50
    doc = 'steps from one turning point to the next'
  []
  [rate]
    kind = number
    above = 0
    default = 1e-3
    doc = 'strain per time'
  []
  [input]
    kind = choice
    choices = 'strain deformation_rate'
    default = strain
    doc = 'what the model reads: strain, giving stress; or deformation_rate and vorticity, giving
           cauchy_stress, as crystals do'
  []
  [ic_Scalar_names]
    kind = names
    optional = true
    doc = 'variables with initial values, such as void_fraction'
  []
  [ic_Scalar_values]
    kind = names
    optional = true
    doc = 'their initial values: numbers or names in [Tensors]'
  []
  [ic_MRP_names]
    kind = names
    optional = true
    doc = 'rotations with initial values, such as orientation'
  []
  [ic_MRP_values]
    kind = names
    optional = true
    doc = 'their initial values: names in [Tensors]'
  []
[]

{% set path = strain | map("float") | list %}
{% for point in path %}
{% if point == (path[loop.index0 - 1] if loop.index0 else 0.0) %}
{{ refuse("strain", "turning point " ~ loop.index ~ " is where the one before lies", "leave it out") }}
{% endif %}
{% endfor %}
{% if cycles > 1 and path[0] == path[-1] %}
{{ refuse("strain", "each cycle would begin where the one before ends", "leave the last turning point out, or write the cycles one after the other") }}
{% endif %}
{% set rates = input == "deformation_rate" %}
{% set stress = "cauchy_stress" if rates else "stress" %}
[Tensors]
  [{{ name }}_times]
    type = Python
    expr = '''
      points = torch.cat([torch.zeros(1), torch.tensor([{{ strain | join(", ") }}]).repeat(${cycles})])
      parts = torch.linspace(0.0, 1.0, ${steps} + 1)[1:]
      lengths = (points[1:] - points[:-1]).abs()
      starts = lengths.cumsum(0) - lengths
      inner = (starts.unsqueeze(-1) + lengths.unsqueeze(-1) * parts).flatten()
      result = Scalar(torch.cat([torch.zeros(1), inner]) / ${rate})
    '''
  []
  [{{ name }}_prescribed]
    type = Python
    expr = '''
      points = torch.cat([torch.zeros(1), torch.tensor([{{ strain | join(", ") }}]).repeat(${cycles})])
{% if rates %}
      rates = ${rate} * torch.sign(points[1:] - points[:-1]).unsqueeze(-1) * torch.ones(${steps})
      along = torch.cat([torch.zeros(1), rates.flatten()])
{% else %}
      parts = torch.linspace(0.0, 1.0, ${steps} + 1)[1:]
      inner = (points[:-1].unsqueeze(-1) + (points[1:] - points[:-1]).unsqueeze(-1) * parts).flatten()
      along = torch.cat([torch.zeros(1), inner])
{% endif %}
      result = SR2(along.unsqueeze(-1) * torch.eye(6)[0])
    '''
  []
  [{{ name }}_control]
    type = Python
    expr = 'SR2(torch.eye(6)[0].expand({{ strain | length }} * ${cycles} * ${steps} + 1, 6))'
  []
{% if rates %}
  [{{ name }}_vorticity]
    type = Python
    expr = 'WR2(torch.zeros({{ strain | length }} * ${cycles} * ${steps} + 1, 3))'
  []
{% endif %}
[]

[Models]
  [{{ name }}_mixed]
    type = MixedControlSetup
    x_above = {{ input }}
    x_below = {{ stress }}
    y = {{ name }}_reached
  []
  [{{ name }}_constraint]
    type = SR2LinearCombination
    from = '{{ name }}_reached prescribed'
    to = {{ input }}_residual
    weights = '1 -1'
  []
  [{{ name }}_residual]
    type = ComposedModel
    models = '${model} {{ name }}_mixed {{ name }}_constraint'
  []
  [{{ name }}_update]
    type = ImplicitUpdate
    equation_system = {{ name }}_system
    solver = {{ name }}_newton
    predictor = {{ name }}_guess
  []
{# The strain that is prescribed is there from the start, so that the first residual is a stress,
   of which rel_tol is a part in any units; in MPa abs_tol is what stops. #}
  [{{ name }}_guess]
    type = MixedControlSetup
    x_above = prescribed
    x_below = {{ input }}~1
    y = {{ input }}
  []
{% if rates %}
  [{{ name }}_strain]
    type = SR2ForwardEulerTimeIntegration
    variable = strain
    rate = deformation_rate
  []
{% endif %}
  [{{ name }}_model]
    type = ComposedModel
    models = '{{ name }}_update ${model}{{ " " ~ name ~ "_strain" if rates }}'
    additional_outputs = '{{ input }}'
  []
[]

[EquationSystems]
  [{{ name }}_system]
    type = NonlinearSystem
    model = {{ name }}_residual
    unknowns = '{{ input }}'
    residuals = '{{ input }}_residual'
  []
[]

[Solvers]
  [{{ name }}_newton]
    type = Newton
    rel_tol = 1e-10
    linear_solver = {{ name }}_lu
  []
  [{{ name }}_lu]
    type = DenseLU
  []
[]

[Drivers]
  [{{ name }}]
    type = TransientDriver
    model = {{ name }}_model
    prescribed_time = {{ name }}_times
    prescribed_SR2_names = 'prescribed control'
    prescribed_SR2_values = '{{ name }}_prescribed {{ name }}_control'
{% if rates %}
    prescribed_WR2_names = vorticity
    prescribed_WR2_values = {{ name }}_vorticity
{% endif %}
{% for kind in ["Scalar", "MRP"] %}
{% for end in ["names", "values"] %}
{% if [ic_Scalar_names, ic_Scalar_values, ic_MRP_names, ic_MRP_values][loop.index0 + (2 if kind == "MRP" else 0)] %}
    ic_{{ kind }}_{{ end }} = '${ic_{{ kind }}_{{ end }}}'
{% endif %}
{% endfor %}
{% endfor %}
  []
[]
