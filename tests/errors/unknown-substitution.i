# call: read
[Domain]
  xmax = ${fprase 2*pi}
[]
