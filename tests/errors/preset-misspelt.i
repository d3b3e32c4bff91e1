# call: build steel
[Models]
  [steel]
    type = J2Plastic
    E = 200e3
  []
[]
