# call: read
L = 12
name = wide
[Domain]
  xmax = ${fparse 2*pi*LL}
  ymax = ${fparse L / (L - 12)}
  zmax = ${fparse sqr(L) + 1}
  xmin = ${fparse 2*(L + 1}
  ymin = ${fparse name}
[]
