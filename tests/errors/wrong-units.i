# call: read
[Executioner]
  dt = ${units 10 sec}
  dtmin = ${units 3 MPa -> mm}
  dtmax = ${units ten s}
[]
