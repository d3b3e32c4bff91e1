# call: read nbatch:=5 Models/elasticity/E=210000
nbatch = 2
[Models]
  [elasticity]
    E = 200000
  []
[]
