# call: read
[Drivers]
  [test]
    type = UniaxialTest
    model = steel
    strain = 0.01
    cycles = 3
  []
[]
