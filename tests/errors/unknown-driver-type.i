# call: driver driver
[Drivers]
  [driver]
    type = TransientDrivr
  []
[]
