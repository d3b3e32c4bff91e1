# call: read
[Domain]
  xmax = ${fparse 2*pi}
[]
